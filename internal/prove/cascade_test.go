package prove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"gatehouse/internal/db"
)

// cascadeManifest declares orders that their account controls, and lines that
// their order controls.
const cascadeManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true, default_permission_set: family}
unauthenticated_per_ip_per_minute: 1000000
entities:
  - {name: account, fields: [{name: name, type: text}]}
  - name: order
    sharing: {controlled_by: account}
    fields:
      - {name: account, type: reference, entity: account, required: true}
      - {name: stage, type: select, options: [new, won], indexed: true}
  - name: line
    sharing: {controlled_by: order}
    fields:
      - {name: order, type: reference, entity: order, required: true, indexed: true}
      - {name: stage, type: select, options: [new, won], indexed: true}
roles: [{name: sales}]
permission_sets:
  - name: family
    entities:
      user: {read: true}
      account: {create: true, read: true, update: true, delete: true}
      order: {create: true, read: true, update: true, delete: true}
      line: {create: true, read: true, update: true, delete: true}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [family]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [family]}
`

// cascadePoints are the points at which the server is killed while it deletes an
// account whose orders and lines go in steps: after one of the steps, or within one.
var cascadePoints = []string{
	"build.swept",
	"build.swept#2,tx.begun,tx.statement#5",
	"build.swept#4",
	"build.swept#5,tx.before-commit",
	"build.swept#7",
}

const (
	cascadeOrders = 110 // more than go with their account
	cascadeLines  = 105 // more than go with their order
)

// Whenever a server is killed between or within the steps in which it deletes what
// is below a record, nobody sees any of it afterwards, and the next server deletes
// the rest (contract A22).
func TestProveAKilledCascadeGoesOn(t *testing.T) {
	together(t)
	asShipped(t)
	failing := failingProgram(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "CASCADE-1", engine)
		w := bare(t, engine)
		w.apply(cascadeManifest)
		tokens := map[string]string{}
		for _, email := range []string{owner, "sam@acme.example", "eva@customer.example"} {
			tokens[email] = w.key(email)
		}
		for range scale(1, 5) {
			for i, at := range cascadePoints {
				if p.tries(i, 3) {
					p.tried(1)
					cascadeOnce(p, w, failing, at, tokens)
				}
			}
		}
	})
}

// kin are the ids of a family: one of its orders, and one of its lines.
type kin struct{ account, order, line string }

func cascadeOnce(p *proof, w *world, failing, at string, tokens map[string]string) {
	n := w.launchFailing(failing, at)
	sam := n.client(tokens["sam@acme.example"])
	family, err := cascadeFamily(sam)
	if err != nil {
		p.t.Fatal(err)
	}
	// A deletion that takes over 5 s is answered, and the server does the rest in its
	// housekeeping (contract A22): on a busy machine it is killed there.
	if a, err := sam.do("DELETE", "/public/v1/data/account/"+family.account, ""); err == nil && a.status != http.StatusOK {
		p.t.Fatalf("the deletion was to be killed at %s: %s", at, a)
	}
	sam.close()
	if n.end(3*time.Minute) == 0 || n.running() { // its housekeeping comes each minute
		p.t.Fatalf("%s: the server was not killed", at)
	}
	left := w.leftBelow()
	if left == 0 {
		p.fail("%s: nothing was left to delete: the server was killed too late", at)
	}
	p.add("left", int(left))
	if !proving {
		w.housekeepingIsDue()
	}
	n = w.start()
	for begun := time.Now(); ; {
		for email, token := range tokens {
			c := n.client(token)
			if err := sightOf(c, family); err != nil {
				p.fail("%s: %s, with %d records left: %v", at, email, left, err)
			}
			c.close()
		}
		if left = w.leftBelow(); left == 0 || time.Since(begun) > 2*time.Minute {
			break
		}
	}
	if left != 0 {
		p.fail("%s: %d rows are left after the next server ran for two minutes", at, left)
	}
	n.kill()
}

// cascadeFamily creates an account with many orders, the first of which has many
// lines, and shares the account.
func cascadeFamily(c *client) (f kin, err error) {
	add := func(kind, body string) (string, error) {
		a, err := c.do("POST", "/public/v1/data/"+kind, body)
		if err != nil {
			return "", err
		}
		if a.status != http.StatusCreated {
			return "", fmt.Errorf("%s", a)
		}
		r, err := a.record()
		return r.ID, err
	}
	if f.account, err = add("account", `{}`); err != nil {
		return f, err
	}
	a, err := c.do("POST", "/public/v1/data/account/"+f.account+"/shares", `{"user": "eva@customer.example", "access": "edit"}`)
	if err != nil {
		return f, fmt.Errorf("share: %w", err)
	}
	if a.status != http.StatusCreated {
		return f, fmt.Errorf("share: %v", a)
	}
	if f.order, err = add("order", `{"account": "`+f.account+`", "stage": "won"}`); err != nil {
		return f, err
	}
	if f.line, err = add("line", `{"order": "`+f.order+`", "stage": "won"}`); err != nil {
		return f, err
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := [8]error{}
	for i := range errs {
		wait.Go(func() {
			for errs[i] == nil {
				switch k := next.Add(1); {
				case k < cascadeOrders:
					_, errs[i] = add("order", `{"account": "`+f.account+`", "stage": "won"}`)
				case k < cascadeOrders+cascadeLines:
					_, errs[i] = add("line", `{"order": "`+f.order+`", "stage": "won"}`)
				default:
					return
				}
			}
		})
	}
	wait.Wait()
	return f, errors.Join(errs[:]...)
}

// sightOf returns an error if a client sees anything of a deleted family.
func sightOf(c *client, f kin) error {
	for _, path := range []string{"order", "line", "order?filter%5Bstage%5D=won", "line?filter%5Bstage%5D=won", "line?filter%5Border%5D=" + f.order} {
		a, err := c.do("GET", "/public/v1/data/"+path, "")
		if err != nil {
			return err
		}
		var list struct {
			Data []json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(a.body, &list); err != nil || a.status == http.StatusOK && len(list.Data) > 0 || a.status != http.StatusOK && a.status != http.StatusBadRequest {
			return fmt.Errorf("%s (%w)", a, err)
		}
	}
	for path, id := range map[string]string{"account": f.account, "order": f.order, "line": f.line} {
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			body := ""
			if method == "PATCH" {
				body = `{}`
			}
			if a, err := c.do(method, "/public/v1/data/"+path+"/"+id, body); err != nil || a.status != http.StatusNotFound {
				return fmt.Errorf("%v (%w)", a, err)
			}
		}
	}
	if a, err := c.do("POST", "/public/v1/data/line", `{"order": "`+f.order+`"}`); err != nil || a.status != http.StatusBadRequest {
		return fmt.Errorf("%v (%w)", a, err)
	}
	return nil
}

// housekeepingIsDue lets the next server do its housekeeping at once. On PostgreSQL the killed one had taken it for a
// minute, which "make test" does not wait for.
func (w *world) housekeepingIsDue() {
	w.t.Helper()
	if w.url == "" {
		return
	}
	ctx := context.Background()
	c, err := pgx.Connect(ctx, w.url)
	if err == nil {
		_, err = c.Exec(ctx, `DELETE FROM housekeeping`)
		err = errors.Join(err, c.Close(ctx))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// leftBelow counts what is to be deleted of records, index rows and work.
func (w *world) leftBelow() (rows int64) {
	w.t.Helper()
	w.database(func(h db.Handle) error {
		return h.Query(context.Background(), `SELECT (SELECT count(*) FROM records WHERE tenant_id = $1 AND entity IN ('order', 'line'))
			+ (SELECT count(*) FROM field_values WHERE tenant_id = $1) + (SELECT count(*) FROM leftovers WHERE tenant_id = $1)`,
			func(r db.Row) error { rows = r.Int(0); return nil })
	})
	return rows
}
