package db_test

import (
	"testing"

	"gatehouse/internal/db"
)

// alsoAdds are statements that TestMigrationsOnlyAdd would refuse and that an older program
// can live with all the same, by file, each with the reason.
var alsoAdds = map[string]map[string]string{}

// An older version works beside what the migrations after compatibleFrom make, because they
// only add. One that must do more waits until no supported version needs what it takes, and
// raises compatibleFrom.
func TestMigrationsOnlyAdd(t *testing.T) {
	for file, statements := range db.LaterMigrations() {
		for _, s := range statements {
			if problem := db.Adds(s); problem != "" && alsoAdds[file][s] == "" {
				t.Errorf("%s: %s; do it in two steps, or raise compatibleFrom (decision 0039):\n%s", file, problem, s)
			}
		}
	}
	for _, c := range []struct {
		statement string
		adds      bool
	}{
		{"CREATE TABLE x (a INTEGER NOT NULL)", true},
		{"CREATE INDEX x_a ON x (a)", true},
		{"ALTER TABLE x ADD COLUMN b TEXT", true},
		{"ALTER TABLE x ADD COLUMN b INTEGER NOT NULL DEFAULT 0", true},
		{"ALTER TABLE x ADD COLUMN b INTEGER NOT NULL", false},
		{"ALTER TABLE x DROP COLUMN b", false},
		{"ALTER TABLE x RENAME TO y", false},
		{"ALTER TABLE x ADD CONSTRAINT c CHECK (a > 0)", false},
		{"CREATE UNIQUE INDEX x_a ON x (a)", false},
		{"drop table x", false},
		{"UPDATE x SET a = 1", false},
		{"CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; END", false},
	} {
		if problem := db.Adds(c.statement); (problem == "") != c.adds {
			t.Errorf("%s: %q", c.statement, problem)
		}
	}
}
