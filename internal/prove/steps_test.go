package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
)

// stepPoints are the points at which an apply that is prepared in steps is killed, and
// whether the change has effect then.
var stepPoints = []struct {
	at      string
	inForce bool
}{
	{"build.begun", false},
	{"build.visited", false},
	{"build.stepped", false},
	{"build.stepped#3", false},
	{"build.stepped,tx.begun,tx.statement#2", false},
	{"build.walked", false},
	{"build.walked,tx.begun,tx.statement", false},
	{"build.checked", false},
	{"build.checked,tx.statement#2", false},
	{"build.named", false},
	{"apply.committed", true},
}

const (
	stepRecords = 1200 // more than an apply visits in one transaction
	stepAfter   = "{name: score, type: number, indexed: true}\n      - {name: stage, type: select, options: [new, won], indexed: true}"
)

// An apply that is killed at any point changes nothing or everything, and the next apply
// completes as if the first had not been killed.
func TestProveAKilledApplyGoesOn(t *testing.T) {
	together(t)
	asShipped(t)
	failing := failingProgram(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p, some := begin(t, "STEPS-1", engine), 5
		if engine == db.Postgres {
			some = 9 // a step takes three times as long there
		}
		for range scale(1, 10) {
			w := fresh(t, engine)
			fillRecords(w)
			want := ""
			for i, pt := range stepPoints {
				if !p.tries(i, some) && !pt.inForce {
					continue
				}
				p.tried(1)
				before := w.must("export", "--tenant", "acme")
				w.applyKilled(failing, pt.at)
				if after := w.must("export", "--tenant", "acme"); (after != before) != pt.inForce {
					p.fail("killed at %s: the change is in force: %v", pt.at, after != before)
				}
				w.apply(stepManifest(true))
				found := w.found()
				if want == "" {
					want = found
				}
				if found != want || !strings.HasPrefix(found, fmt.Sprintf("score %d, stage %d,", stepRecords, stepRecords)) {
					p.fail("killed at %s, then applied: %s, want %s", pt.at, found, want)
				}
				w.apply(stepManifest(false))
			}
		}
	})
}

// stepManifest returns the manifest before and after the change: a field gets another type
// and an index, a rule is added, and the user who owns all records gets another role.
func stepManifest(after bool) string {
	text := strings.Replace(manifest, "{name: score, type: number, indexed: true}", "{name: score, type: number}\n      - {name: stage, type: text}", 1)
	if !after {
		return text + "sharing_rules: []\n"
	}
	text = strings.Replace(text, "{name: score, type: number}\n      - {name: stage, type: text}", stepAfter, 1)
	text = strings.Replace(text, "roles: [{name: sales}]", "roles: [{name: sales}, {name: buyers}]", 1)
	text = strings.Replace(text, "role: sales,", "role: buyers,", 1)
	return text + "sharing_rules: [{entity: contact, where: {stage: won}, share_with_role: sales, access: read}]\n"
}

// fillRecords gives the tenant many records, which a user with a role owns.
func fillRecords(w *world) {
	w.t.Helper()
	w.apply(stepManifest(false))
	ctx := context.Background()
	w.database(func(h db.Handle) error {
		owner := ""
		err := h.Query(ctx, `SELECT user_id FROM users WHERE tenant_id = $1 AND role = 'sales'`, func(r db.Row) error { owner = r.Text(0); return nil })
		if err != nil {
			return err
		}
		return h.Write(ctx, func(tx db.Tx) error {
			for i := range stepRecords {
				data := fmt.Sprintf(`{"first_name":"n","score":%d,"stage":%q}`, i, []string{"new", "won"}[i%2])
				_, err := tx.Exec(ctx, `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at,
					created_by, updated_by, version, data) VALUES ($1, 'contact', $2, $3, 'sales', $4, $4, $3, $3, 1, $5`+tx.Dialect().JSON+`)`,
					clock.NewID(clock.FromMicros(int64(i+1))), owner, i+1, data)
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (w *world) database(fn func(h db.Handle) error) {
	w.t.Helper()
	d, err := db.Open(context.Background(), db.Config{Dir: w.dir, URL: w.url})
	if err == nil {
		err = errors.Join(fn(d.For("acme")), d.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// applyKilled runs an apply that is killed at a point.
func (w *world) applyKilled(failing, at string) {
	w.t.Helper()
	file := filepath.Join(w.logs, "after.yaml")
	if err := os.WriteFile(file, []byte(stepManifest(true)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	like := w.command(context.Background(), "apply", "-f", file)
	c := exec.CommandContext(context.Background(), failing, like.Args[1:]...)
	c.Env = append(slices.Clone(w.env), "GATEHOUSE_KILL_AT="+at)
	out, _ := c.CombinedOutput() // it must fail
	if !bytes.Contains(out, []byte("killed at")) {
		w.t.Fatalf("the apply did not come to %s: %s", at, out)
	}
}

// found counts the rows under the names in use.
func (w *world) found() string {
	var counts []string
	ctx := context.Background()
	w.database(func(h db.Handle) error {
		one := func(what, sql string) error {
			return h.Query(ctx, sql, func(r db.Row) error { counts = append(counts, fmt.Sprint(what, " ", r.Int(0))); return nil })
		}
		const values = `SELECT count(*) FROM field_values v JOIN fields f ON f.tenant_id = $1 AND f.entity = v.entity
			AND v.field = CASE WHEN f.index_name = '' THEN f.name ELSE f.index_name END
			WHERE v.tenant_id = $1 AND v.entity = 'contact' AND `
		return errors.Join(
			one("score", values+`f.name = 'score' AND v.reach = ''`),
			one("stage", values+`f.name = 'stage' AND v.reach = ''`),
			one("ways", values+`f.name = 'stage' AND v.reach <> ''`),
			one("matches", `SELECT count(*) FROM rule_matches m JOIN sharing_rules s ON s.tenant_id = $1
				AND m.rule_id = CASE WHEN s.match_name = '' THEN s.rule_id ELSE s.match_name END WHERE m.tenant_id = $1`),
			one("builds", `SELECT count(*) FROM builds b WHERE b.tenant_id = $1`),
			one("moved", `SELECT count(*) FROM records WHERE tenant_id = $1 AND owner_role <> 'sales'`),
		)
	})
	return strings.Join(counts, ", ")
}
