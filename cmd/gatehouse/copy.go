package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
)

// copyEvery is how often a copy says how far it has come.
const copyEvery = 2 * time.Second

// copyFlags are the flags of copy.
type copyFlags struct {
	*flags
	toData  string
	restart bool
}

func copyCommand(f *flags) action {
	c := &copyFlags{flags: f}
	f.StringVar(&c.toData, "to-data", "", "copy from --database to a new data folder `DIR`; without it from --data to --database")
	f.BoolVar(&c.restart, "restart", false, "empty the target of a copy that was not finished, and begin anew")
	f.BoolVar(&f.asJSON, "json", false, "print one JSON object for each table that was compared")
	return func(ctx context.Context) error {
		if f.database == "" {
			return f.wrong("--database is required: from --data to it, or, with --to-data DIR, from it to DIR")
		}
		if c.toData != "" && f.Lookup("data").Changed && f.data != f.getenv("GATEHOUSE_DATA") {
			return f.wrong("--data and --to-data exclude each other: with --to-data the source is --database")
		}
		return c.run(ctx)
	}
}

// run copies. The side with SQLite is locked as by a server.
func (f *copyFlags) run(ctx context.Context) (err error) {
	post, err := f.config()
	if err != nil {
		return err
	}
	post.Name = "gatehouse copy " + rand.Text()[:8]
	lite := db.Config{Dir: f.data, Serve: true}
	from, to := &lite, &post
	if f.toData != "" {
		lite.Dir = f.toData
		from, to = to, from
	}
	from.Existing, to.Target = true, true
	if err := f.place(lite, f.toData != ""); err != nil {
		return err
	}
	// Of the source's key there may be one in its folder, and in the target's of its own.
	ring, err := secret.LoadMasterKey(secret.MasterKeyOptions{File: f.masterKeyFile, Env: f.getenv("GATEHOUSE_MASTER_KEY"), Dir: lite.Dir})
	if err != nil {
		return err
	}
	if err := keyInFolder(lite.Dir, ring); err != nil {
		return err
	}
	f.ring = ring
	source, err := db.Open(ctx, *from)
	if err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := f.keyring(ctx, source); err != nil {
		return err
	}
	target, err := db.Open(ctx, *to)
	if err != nil {
		return fmt.Errorf("the target: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()

	names := map[*db.Config]string{&lite: "SQLite in " + lite.Dir, &post: "PostgreSQL at " + withoutPassword(post.URL)}
	f.say("From %s to %s.", names[from], names[to])
	progress := &copyProgress{env: f.env}
	begun := time.Now()
	tables, err := (&db.Copy{From: source, To: target, Restart: f.restart, Progress: progress.note}).Run(ctx)
	if printed := f.print(tables); printed != nil {
		return errors.Join(err, printed)
	}
	if err != nil {
		return f.explainCopy(err)
	}
	rows := int64(0)
	for _, t := range tables {
		rows += t.Rows
	}
	f.say("%d tables with %s rows are equal on both sides, after %s.", len(tables), thousands(rows), time.Since(begun).Round(100*time.Millisecond))
	f.say("%s", f.next(names[from]))
	return nil
}

// place checks the folder: a source has a database; a target has none, or that of a copy.
func (f *copyFlags) place(lite db.Config, target bool) error {
	_, err := os.Stat(filepath.Join(lite.Dir, db.FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && target:
		return vacant(lite.Dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no database in %s; --data names another folder, and --to-data DIR is for the way from PostgreSQL to SQLite", lite.Dir)
	}
	return err
}

// keyInFolder returns an error if the folder has another master key, which serve would take.
func keyInFolder(dir string, ring *secret.Keyring) error {
	path := filepath.Join(dir, secret.MasterKeyFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	own, err := secret.LoadMasterKey(secret.MasterKeyOptions{Dir: dir})
	if err == nil && own.CheckValue() != ring.CheckValue() {
		err = fmt.Errorf("master key: %s is another one than that of --master-key-file or GATEHOUSE_MASTER_KEY", path)
	}
	return err
}

// print writes the tables that were compared.
func (f *copyFlags) print(tables []db.CopiedTable) error {
	if !f.asJSON {
		return nil
	}
	out := json.NewEncoder(f.stdout)
	for _, t := range tables {
		err := out.Encode(struct {
			Table        string `json:"table"`
			Equal        bool   `json:"equal"`
			Rows         int64  `json:"rows"`
			TargetRows   int64  `json:"target_rows"`
			SHA256       string `json:"sha256"`
			TargetSHA256 string `json:"target_sha256"`
		}{t.Table, t.Equal(), t.Rows, t.TargetRows, t.Digest, t.TargetDigest})
		if err != nil {
			return err
		}
	}
	return nil
}

// explainCopy says of a copy that was interrupted how it goes on.
func (f *copyFlags) explainCopy(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: the same command goes on where it stopped; until then serve refuses the target")
	}
	return err
}

// next says how the target is served.
func (f *copyFlags) next(from string) string {
	key := "with the same master key"
	if f.masterKeyFile == "" && f.getenv("GATEHOUSE_MASTER_KEY") == "" {
		key = "with --master-key-file " + filepath.Join(f.data, secret.MasterKeyFile)
		if f.toData != "" {
			key = "whose master key is there"
		}
	}
	what := "--database …"
	if f.toData != "" {
		what = "--data " + f.toData
	}
	return fmt.Sprintf("Serve it: gatehouse serve %s, %s. Never serve %s beside it: mails and deliveries that wait are in both.", what, key, from)
}

// withoutPassword returns a URL without its password, for people.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil { // several hosts with ports, say
		return "--database"
	}
	return u.Host + u.Path
}

// copyProgress says how far a copy has come: a line for each table that has rows, and one every
// two seconds.
type copyProgress struct {
	*env
	table  string
	verify bool
	begun  time.Time // the table
	said   time.Time
}

func (p *copyProgress) note(c db.CopyProgress) error {
	now := time.Now()
	if p.table != c.Table || p.verify != c.Verify {
		if c.Verify && !p.verify {
			p.say("Everything is copied. It is read again on both sides and compared.")
		}
		p.table, p.verify, p.begun, p.said = c.Table, c.Verify, now, now
	}
	switch {
	case c.Done && c.Rows > 0 && !c.Verify:
		more := map[bool]string{true: "more "}[c.Resumed]
		rows := map[bool]string{true: "row", false: "rows"}[c.Rows == 1]
		p.say("%s: %s %s%s.", c.Table, thousands(c.Rows), more, rows)
	case !c.Done && now.Sub(p.said) >= copyEvery:
		p.said = now
		rate := int64(float64(c.Rows) / now.Sub(p.begun).Seconds())
		p.say("%s: %s %s, %s a second", c.Table, thousands(c.Rows), map[bool]string{true: "compared", false: "rows"}[c.Verify], thousands(rate))
	}
	return nil
}
