package prove

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// nextMigration is a migration such as a release may have: it only adds.
const nextMigration = `-- What the next release adds, for the test of versions beside each other.
CREATE TABLE next_release (tenant_id {text} NOT NULL, name {text} NOT NULL, PRIMARY KEY (tenant_id, name)) {clustered};
ALTER TABLE records ADD COLUMN next_release INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN next_release {text};
CREATE INDEX records_next_release ON records (tenant_id, next_release) WHERE next_release > 0;
`

// A newer version is started beside the last released one and migrates the database; the older
// one is started again beside it, and after it. No request of either fails.
func TestProveVersionsBesideEachOther(t *testing.T) {
	if !proving {
		t.Skip("it builds two versions: make prove; TestMigrationsOnlyAdd checks the rule that it rests on")
	}
	p := begin(t, "ROLL-2", db.Postgres)
	older, newer := releasedProgram(t), nextProgram(t)
	w := bare(t, db.Postgres)
	w.binary = older
	w.provision()
	a := w.start()
	w.binary = newer
	b := w.start()
	f := newFleet(p, 12)
	f.pause = 10 * time.Millisecond
	both := a.client(w.token)
	both.http.Transport = alternating(strings.TrimPrefix(a.public, "http://"), strings.TrimPrefix(b.public, "http://"))
	versionsLoad(t, f, both)
	a.terminate()
	if code := a.end(grace); code != 0 || a.panicked() {
		p.fail("the older version ends with %d: %s%s", code, a.stdout(), a.stderr())
	}
	verify(p, b, w, f)
	w.binary = older
	again := w.start() // a rollback, first beside the newer version, then alone
	both.http.Transport = alternating(strings.TrimPrefix(again.public, "http://"), strings.TrimPrefix(b.public, "http://"))
	both.base = again.public
	versionsLoad(t, f, both)
	b.terminate()
	if code := b.end(grace); code != 0 || b.panicked() {
		p.fail("the newer version ends with %d: %s%s", code, b.stdout(), b.stderr())
	}
	verify(p, again, w, f)
	p.tried(f.acknowledged())
}

// versionsLoad lets the fleet write 5,000 times more.
func versionsLoad(t *testing.T, f *fleet, c *client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := f.acknowledged()
	var load sync.WaitGroup
	load.Go(func() { f.load(ctx, c, func() bool { return false }) })
	for begun := time.Now(); f.acknowledged() < begin+5000 && f.p.sound() && time.Since(begun) < 5*time.Minute; {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	load.Wait()
	c.close()
}

// alternation sends each request to the next of two addresses.
type alternation struct {
	mu    sync.Mutex
	next  int
	addrs [2]string
	http.RoundTripper
}

func alternating(a, b string) *alternation {
	return &alternation{addrs: [2]string{a, b}, RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}}
}

func (x *alternation) RoundTrip(r *http.Request) (*http.Response, error) {
	x.mu.Lock()
	x.next = 1 - x.next
	to := x.addrs[x.next]
	x.mu.Unlock()
	r = r.Clone(r.Context())
	r.URL.Host = to // the tenant is found by r.Host, which stays
	return x.RoundTripper.RoundTrip(r)
}

// releasedProgram builds the last tagged version, or, as long as there is no tag, the commit
// that testdata/released names.
func releasedProgram(t *testing.T) string {
	t.Helper()
	ref := strings.TrimSpace(git(t, "tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD"))
	if ref, _, _ = strings.Cut(ref, "\n"); ref == "" {
		named, err := os.ReadFile("testdata/released")
		if err != nil {
			t.Fatal(err)
		}
		ref = strings.TrimSpace(string(named))
	}
	t.Logf("the older version is %s", ref)
	return buildTree(t, ref, "")
}

// nextProgram builds this version with one more migration.
func nextProgram(t *testing.T) string {
	t.Helper()
	return buildTree(t, "HEAD", nextMigration)
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("git %s: %s", args, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// buildTree builds a commit, with one more migration if there is one, and returns the
// program's path.
func buildTree(t *testing.T, ref, migration string) string {
	t.Helper()
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	git(t, "archive", "--prefix=tree/", "-o", filepath.Join(dir, "tree.tar"), ref)
	if out, err := exec.Command("tar", "-C", dir, "-xf", filepath.Join(dir, "tree.tar")).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	if migration != "" {
		if err := os.WriteFile(filepath.Join(tree, "internal", "db", "migrations", "9998_next_release.sql"), []byte(migration), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fetch := exec.Command("scripts/fetch-engine")
	fetch.Dir = tree
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("scripts/fetch-engine: %v: %s", err, out)
	}
	program := filepath.Join(dir, "gatehouse")
	build := exec.Command("go", "build", "-p", "2", "-buildvcs=false", "-o", program, "./cmd/gatehouse")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", ref, err, out)
	}
	return program
}
