package db_test

import (
	"testing"

	"gatehouse/internal/db"
)

// boundTexts are bound to their tenant.
var boundTexts = []string{
	`SELECT a FROM t WHERE tenant_id = $1`,
	`select a from t where tenant_id=$1 and b = $2`,
	`SELECT a FROM t WHERE b = $2 AND tenant_id = $1 ORDER BY a LIMIT 5`,
	`SELECT a FROM main.t AS x WHERE (x.tenant_id = $1 AND (x.b = $2 OR x.c = $3))`,
	`SELECT a FROM "t" x WHERE x."tenant_id" = $1 FOR UPDATE`,
	`SELECT a FROM t JOIN u ON u.tenant_id = $1 AND u.id = t.id WHERE t.tenant_id = $1`,
	`SELECT a FROM t LEFT JOIN u x ON x.tenant_id = $1 AND (x.a = 1 OR x.b = 2), v WHERE t.tenant_id = $1 AND v.tenant_id = $1`,
	`SELECT a FROM t, json_each(t.doc) AS e WHERE t.tenant_id = $1`,
	`SELECT a FROM t, unnest($2) WHERE tenant_id = $1`,
	`SELECT a FROM (SELECT a FROM t WHERE tenant_id = $1) q`,
	`SELECT a FROM ((SELECT a FROM t WHERE tenant_id = $1) UNION SELECT b FROM u WHERE tenant_id = $1) q`,
	`SELECT a FROM (SELECT id FROM (SELECT id FROM t WHERE tenant_id = $1 UNION SELECT id FROM u WHERE u.tenant_id = $1) q
		ORDER BY id LIMIT $5) k CROSS JOIN records r WHERE r.tenant_id = $1 AND r.id = k.id`,
	`SELECT a FROM (t JOIN u ON u.tenant_id = $1) WHERE t.tenant_id = $1`,
	`SELECT a FROM t WHERE tenant_id = $1 AND EXISTS (SELECT 1 FROM u WHERE u.tenant_id = $1 AND u.id = t.id)`,
	`SELECT a FROM t WHERE tenant_id = $1 AND b IS DISTINCT FROM c`,
	`SELECT extract(epoch FROM clock_timestamp()) FROM t WHERE tenant_id = $1`,
	`SELECT a FROM t WHERE tenant_id = $1 UNION ALL SELECT b FROM u WHERE tenant_id = $1`,
	`WITH q AS (SELECT a FROM t WHERE tenant_id = $1), r (x) AS MATERIALIZED (SELECT a FROM q) SELECT * FROM r JOIN q ON q.a = r.x`,
	`WITH RECURSIVE up(name) AS (SELECT parent FROM roles WHERE tenant_id = $1 UNION
		SELECT r.parent FROM roles r JOIN up ON r.name = up.name WHERE r.tenant_id = $1) SELECT name FROM up`,
	`INSERT INTO t (tenant_id, a) VALUES ($1, $2), ($1, $3) ON CONFLICT (tenant_id) DO UPDATE SET a = excluded.a RETURNING a`,
	`INSERT INTO t AS x (tenant_id) VALUES ($1)`,
	`INSERT INTO t (tenant_id, a) SELECT $1, a FROM u WHERE tenant_id = $1`,
	`INSERT INTO t (tenant_id, a) SELECT DISTINCT $1, a FROM u WHERE tenant_id = $1`,
	`UPDATE t SET a = $2 WHERE tenant_id = $1`,
	`UPDATE t SET a = (SELECT max(b) FROM u WHERE tenant_id = $1) WHERE tenant_id = $1 RETURNING a`,
	`UPDATE t SET a = u.a FROM u WHERE t.tenant_id = $1 AND u.tenant_id = $1`,
	`DELETE FROM t WHERE tenant_id = $1 -- AND OR 'x`,
	`DELETE FROM t WHERE b = 'it''s FROM u' AND tenant_id = $1`,
	`SELECT CAST($1 AS TEXT)`,
}

// looseTexts could touch another tenant's rows.
var looseTexts = []string{
	`SELECT 1`,
	`SELECT a FROM t`,
	`SELECT a FROM t WHERE tenant_id = $2`,
	`SELECT a FROM t WHERE tenant_id <> $1`,
	`SELECT a FROM t WHERE tenant_id = $11`,
	`SELECT tenant_id = $1 FROM t`,
	`SELECT a FROM t WHERE tenant_id = $1 || 'x'`,
	`SELECT a FROM t WHERE tenant_id = $1 OR a = 1`,
	`SELECT a FROM t WHERE a = 1 OR b = 2 AND tenant_id = $1`,
	`SELECT a FROM t WHERE (tenant_id = $1 AND b = 1) OR a = 1`,
	`SELECT a FROM t WHERE NOT tenant_id = $1`,
	`SELECT a FROM t WHERE NOT (tenant_id = $1)`,
	`SELECT a FROM t WHERE coalesce(tenant_id = $1, true)`,
	`SELECT a FROM t WHERE CASE WHEN tenant_id = $1 THEN 1 ELSE 1 END`,
	`SELECT a FROM t WHERE 'tenant_id = $1' = b AND b = $1`,
	`SELECT a FROM t WHERE b = $1 -- tenant_id = $1`,
	`SELECT a FROM t WHERE b = $1 /* AND tenant_id = $1 */`,
	`SELECT a FROM t, u WHERE t.tenant_id = $1`,
	`SELECT a FROM t JOIN u ON u.id = t.id WHERE t.tenant_id = $1 AND t.tenant_id = $1`,
	`SELECT a FROM t x JOIN t y ON x.id = y.id WHERE x.tenant_id = $1`,
	`SELECT a FROM t JOIN u ON t.tenant_id = u.tenant_id WHERE t.tenant_id = $1`,
	`SELECT a FROM (SELECT a FROM t) q WHERE tenant_id = $1`,
	`SELECT a FROM t WHERE tenant_id = $1 AND b IN (SELECT b FROM u)`,
	`SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE tenant_id = $1)`,
	`SELECT a FROM t WHERE tenant_id = $1 UNION SELECT a FROM u`,
	`SELECT a FROM t UNION SELECT a FROM u WHERE tenant_id = $1 AND tenant_id = $1`,
	`WITH q AS (SELECT a FROM t) SELECT a FROM q WHERE tenant_id = $1`,
	`SELECT a FROM main.q WHERE b = $1`,
	`INSERT INTO t (a, tenant_id) VALUES ($2, $1)`,
	`INSERT INTO t VALUES ($1, $2)`,
	`INSERT INTO t (tenant_id, a) VALUES ($2, $1)`,
	`INSERT INTO t (tenant_id, a) VALUES ($1, 1), ($2, 1)`,
	`INSERT INTO t (tenant_id, a) VALUES ($1 || 'x', 1)`,
	`INSERT INTO t (tenant_id, a) SELECT tenant_id, $1 FROM u WHERE tenant_id = $1`,
	`INSERT INTO t (tenant_id, a) SELECT $1, a FROM u`,
	`UPDATE t SET tenant_id = $1 WHERE a = $2`,
	`UPDATE t SET a = $1`,
	`UPDATE t SET a = (SELECT b FROM u WHERE tenant_id = $1)`,
	`DELETE FROM t`,
	`DELETE FROM t USING u WHERE t.tenant_id = $1`,
	`SELECT extract(epoch FROM now()), $1 FROM t`,
}

func TestTenantBound(t *testing.T) {
	for _, sql := range boundTexts {
		if problem := db.TenantProblem(sql); problem != "" {
			t.Errorf("refused: %s\n%s", problem, sql)
		}
	}
	for _, sql := range looseTexts {
		if db.TenantProblem(sql) == "" {
			t.Errorf("let through: %s", sql)
		}
	}
}

func TestTextsForSQLite(t *testing.T) {
	for sql, want := range map[string]string{
		`SELECT $2, '$1', "$1", $10 -- $1`:      `SELECT ?2, '$1', "$1", ?10 -- $1`,
		`SELECT 'it''s $1', a->>'$.x', $1`:      `SELECT 'it''s $1', a->>'$.x', ?1`,
		`SELECT /* $1 */ $1||$2 FROM t WHERE $`: `SELECT /* $1 */ ?1||?2 FROM t WHERE $`,
		`INSERT INTO t VALUES ('INSERT INTO')`:  `INSERT OR FAIL INTO t VALUES ('INSERT INTO')`,
	} {
		if got := db.SQLiteText(sql); got != want {
			t.Errorf("%s\nbecame %s", sql, got)
		}
	}
	script := "-- a; b\nCREATE TABLE a (x); ;\n  INSERT INTO a VALUES (';');\n-- end;"
	if got := db.Split(script); got != "CREATE TABLE a (x)|INSERT INTO a VALUES (';')" {
		t.Errorf("split into %q", got)
	}
}

// Scanning ends for every input.
func FuzzTenantProblem(f *testing.F) {
	f.Add(`SELECT a FROM (t JOIN u ON u.tenant_id = $1) WHERE ')' "x`)
	f.Add(`INSERT INTO t (tenant_id`)
	f.Add(`WITH a (x) AS NOT`)
	f.Fuzz(func(t *testing.T, sql string) {
		db.TenantProblem(sql)
		if more := len(db.SQLiteText(sql)) - len(sql); more%len(" OR FAIL") != 0 {
			t.Error("the rewriting changes the length")
		}
	})
}
