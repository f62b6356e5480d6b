package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/secret"
)

// hookManifest is a manifest with a secret, which is stored sealed.
const hookManifest = acmeManifest + `
logic_components:
  - {name: check, source: "export default () => ({providerEventId: '1', eventKind: 'k', canonicalEvent: {}})"}
custom_endpoints:
  - {slug: shop, target: {component: check}, auth: signed, verifier: check, webhook_secret: a-long-enough-secret}
`

const (
	noKey    = "put back the key that the database was set up with"
	otherKey = "master key: this is another one than the database was set up with"
)

// otherKeyFile returns the path of a file with another master key.
func otherKeyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// needingKey runs each command that needs the master key with flags that make it fail
// with an error that contains why.
func (x *cli) needingKey(why string, flags ...string) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx(), 20*time.Second) // a server that starts does not end
	defer cancel()
	x.stdin = acmeManifest
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0"}, {"demo", "--listen", "127.0.0.1:0"}, {"apply", "-f", "-"}, {"apply", "-f", "-", "--dry-run"},
		{"tenant", "rotate-jwt-key", "--tenant", "acme"}, {"user", "resend", "--tenant", "acme", "--email", "sam@acme.example"},
	} {
		args = append(append(args, x.place...), flags...)
		var out, words bytes.Buffer
		code := run(ctx, args, func(name string) string { return x.env[name] }, strings.NewReader(x.stdin), &out, &words)
		if code != 1 || !strings.Contains(words.String(), why) {
			x.t.Errorf("%q: status %d, %q, want 1 and %q", args, code, words.String(), why)
		}
	}
}

func (x *cli) key() string { return filepath.Join(x.config.Dir, "master.key") }

// forget deletes the check value, which folders of early versions do not have.
func (x *cli) forget() {
	x.t.Helper()
	d, err := db.Open(x.ctx(), x.config)
	if err != nil {
		x.t.Fatal(err)
	}
	defer d.Close()
	err = d.Unscoped("a test").Write(x.ctx(), func(tx db.Tx) error {
		n, err := tx.Exec(x.ctx(), `DELETE FROM installation WHERE name = $1`, checkValue)
		if n != 1 {
			x.t.Errorf("%d check values", n)
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

func TestNoMasterKeyIsMadeForAFolderThatHasData(t *testing.T) {
	for _, old := range []bool{false, true} {
		x, _ := backedUp(t)
		if old {
			x.forget()
		}
		file := filepath.Join(t.TempDir(), "backup")
		x.ok("backup", file)
		key, err := os.ReadFile(x.key())
		if err != nil {
			t.Fatal(err)
		}
		at := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "data")})
		at.ok("restore", file)
		at.needingKey(noKey)
		if _, err := os.Stat(at.key()); err == nil {
			t.Error("a key was made")
		}
		at.ok("user", "list", "--tenant", "acme") // commands that need no secret still work, so that no data is lost
		at.ok("export", "--tenant", "acme")
		if err := os.WriteFile(at.key(), key, 0o600); err != nil {
			t.Fatal(err)
		}
		at.stdin = acmeManifest
		at.ok("apply", "-f", "-")
		at.ok("tenant", "rotate-jwt-key", "--tenant", "acme")
	}
}

func TestAnotherMasterKeyIsRefusedOnSQLiteToo(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = hookManifest
	x.ok("apply", "-f", "-")
	x.needingKey(otherKey, "--master-key-file", otherKeyFile(t))
	x.env["GATEHOUSE_MASTER_KEY"] = strings.Repeat("cd", 32)
	x.needingKey(otherKey)
	delete(x.env, "GATEHOUSE_MASTER_KEY")

	// A folder of an early version has no check value; its sealed values are checked.
	x.forget()
	x.needingKey(otherKey, "--master-key-file", otherKeyFile(t))
	x.stdin = hookManifest
	x.ok("apply", "-f", "-")
	if check, err := x.open().Value(x.ctx(), checkValue); err != nil || check == "" {
		t.Errorf("the check value is not stored again: %v", err)
	}
	x.forget()
	x.ok("tenant", "rotate-jwt-key", "--tenant", "acme")
	x.forget()
	x.stdin = strings.ReplaceAll(acmeManifest, "acme", "globex") // only acme's signing keys show that the key is wrong
	x.failsRaw(1, otherKey, "apply", "-f", "-", "--data", x.config.Dir, "--master-key-file", otherKeyFile(t))
}

// Sealed mails and failed deliveries are checked, too.
func TestAFolderOfEarlyVersionsIsCheckedByAllThatIsSealed(t *testing.T) {
	for _, c := range []struct{ what, purpose, insert string }{
		{"a mail", "waiting mail", `INSERT INTO outbox (tenant_id, mail_id, sealed, attempts, next_at, leased_until, created_at, last_error)
			VALUES ($1, 'm', $2, 0, 9000000000000000, 0, 0, '')`},
		{"a delivery", "failed delivery", `INSERT INTO runs (tenant_id, run_id, started_at, took_us, cpu_us, target_kind, target, slug, auth, user_id,
			request_id, event_id, status, error_code, error, tries, trace, console, payload)
			VALUES ($1, 'r', 1, 0, 0, 'component', 'c', 's', 'token', '', '', '', 'failed', '', '', 1, '', '', $2)`},
	} {
		x := newCLI(t, db.Config{Dir: t.TempDir()})
		x.stdin = acmeManifest
		x.ok("apply", "-f", "-")
		key, err := os.ReadFile(x.key())
		if err != nil {
			t.Fatal(err)
		}
		master, err := hex.DecodeString(strings.TrimSpace(string(key)))
		if err != nil {
			t.Fatal(err)
		}
		keyring, err := secret.NewKeyring(master)
		if err != nil {
			t.Fatal(err)
		}
		err = x.open().For("acme").Write(x.ctx(), func(tx db.Tx) error {
			_, err := tx.Exec(x.ctx(), c.insert, keyring.Seal(c.purpose, []byte("{}")))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		x.forget()
		x.stdin = acmeManifest
		x.failsRaw(1, otherKey, "apply", "-f", "-", "--data", x.config.Dir, "--master-key-file", otherKeyFile(t))
		x.stdin = acmeManifest
		x.ok("apply", "-f", "-")
	}
}

// If several commands start at once, one makes the key and the check value.
func TestCommandsThatSetUpAFolderAtOnceAgreeOnTheKey(t *testing.T) {
	x := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "data")})
	x.stdin = acmeManifest
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			if _, words, code := x.raw(append([]string{"apply", "-f", "-"}, x.place...)...); code != 0 {
				t.Errorf("status %d: %s", code, words)
			}
		})
	}
	wait.Wait()
	x.ok("tenant", "rotate-jwt-key", "--tenant", "acme")
}

func TestTheMasterKeyIsCheckedOnBothEngines(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			x := newCLI(t, dbtest.Config(t, engine))
			x.stdin = acmeManifest
			x.ok("apply", "-f", "-")
			x.env["GATEHOUSE_MASTER_KEY"] = strings.Repeat("ab", 32)
			x.needingKey(otherKey)
		})
	}
}

// A key may come from a pipe, as in --master-key-file <(…), which can be read once.
func TestTheMasterKeyMayComeOutOfAPipe(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			x := newCLI(t, dbtest.Config(t, engine))
			delete(x.env, "GATEHOUSE_MASTER_KEY")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := w.WriteString(strings.Repeat("ab", 32)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			x.stdin = acmeManifest
			x.ok("apply", "-f", "-", "--master-key-file", "/dev/fd/"+strconv.Itoa(int(r.Fd())))
		})
	}
}
