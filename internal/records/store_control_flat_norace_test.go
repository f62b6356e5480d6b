//go:build !race

package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// parentSeers are the viewers of a dealer, each of whom sees 20 lines in one way:
// by a share of the account, by a rule, by a rule on the account itself, by the
// owner's role; few among many accounts and orders without lines; and old lines below
// newer hidden ones.
var parentSeers = []string{"sharing", "mat", "near", "leading", "barren", "old"}

// wholesale creates lines that only olivia sees, and 20 for each of
// parentSeers. It writes the hidden ones as the product does, but many at once.
func (h *house) wholesale(n int) {
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(access.PutRole(ctx, tx, access.Role{Name: "matched"}),
			access.PutRule(ctx, tx, &access.SharingRule{Entity: "account", ShareWithRole: "matched", Access: access.ReadOnly,
				Where: []access.Condition{{Field: "name", Value: []byte(`"m"`)}}}),
			schema.PutUserFields(ctx, tx, []*schema.Field{{Name: "near", Type: schema.Multireference, Target: "account", Managed: true}}),
			access.PutRule(ctx, tx, &access.SharingRule{Entity: "account", ShareWith: access.InternalUsers, Access: access.ReadOnly,
				Where: []access.Condition{{Field: schema.IDField, Viewer: "near"}}}))
	})
	h.user("sharing", user.User{Sets: []string{"work"}})
	h.user("barren", user.User{Sets: []string{"work"}})
	h.user("old", user.User{Sets: []string{"work"}})
	h.user("mat", user.User{Role: "matched", Sets: []string{"work"}})
	h.user("lead", user.User{Role: "support", Sets: []string{"work"}})
	h.user("leading", user.User{Role: "ceo", Sets: []string{"work"}})
	olivia := h.as("olivia")
	account := func(owner, name string) string {
		return id(h.create(olivia, "account", fmt.Sprintf(`{"owner_id": %q, "name": %q}`, h.ids[owner], name)))
	}
	lines := func(account string, orders, each int) {
		for range orders {
			order := h.under(olivia, "order", "account", account, "")
			for range each {
				h.under(olivia, "line", "order", order, `, "stage": "won"`)
			}
		}
	}
	shared := func(name, account string) string {
		err := olivia.Share(context.Background(), "account", account, records.Share{Principal: access.UserPrincipal(user.ID(h.ids[name])), Access: access.ReadOnly})
		if err != nil {
			h.t.Fatal(describe(err))
		}
		return account
	}
	lines(account("old", "a"), 1, 20)
	hidden := h.under(olivia, "order", "account", account("olivia", "a"), "")
	h.under(olivia, "line", "order", hidden, `, "stage": "won"`)
	h.hideBelow("order", "account", account("olivia", "b"), n/20)
	h.hideBelow("line", "order", hidden, n/2)
	var near []string
	for range 4 {
		near = append(near, account("olivia", "a"))
		lines(near[len(near)-1], 1, 5)
		lines(shared("sharing", account("olivia", "a")), 1, 5)
		lines(account("olivia", "m"), 2, 2)
		lines(account("olivia", "m"), 1, 1)
		lines(account("lead", "a"), 1, 5)
	}
	h.user("near", user.User{Sets: []string{"work"}, Custom: jsontext.Value(`{"near#managed": ["` + strings.Join(near, `","`) + `"]}`)})
	barren := account("barren", "a")
	lines(barren, 4, 5)
	h.hideBelow("order", "account", barren, n/20) // without lines
	for range 30 {
		account("barren", "a")
	}
	h.hideBelow("line", "order", hidden, n/2)
}

// hideBelow copies the newest record of a type below a parent n times.
func (h *house) hideBelow(kind, field, parent string, n int) {
	const numbers = `(WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < $3) SELECT i FROM k) k`
	made := h.under(h.as("olivia"), kind, field, parent, `, "stage": "won"`)
	at := h.config().Schema.Entity(kind).Field(field).StoredAs()
	err := h.d.Unscoped("test").Write(context.Background(), func(tx db.Tx) error {
		ctx := context.Background()
		var last, of int64
		err := tx.Query(ctx, `SELECT c.last, r.created_at FROM tenant_clocks c JOIN records r ON r.tenant_id = $1 AND r.record_id = $2 WHERE c.tenant_id = $1`,
			func(r db.Row) error { last, of = r.Int(0), r.Int(1); return nil }, h.tenant, made)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by, updated_by, version, data, data_bytes)
			SELECT r.tenant_id, r.entity, CAST(r.record_id AS TEXT) || '-' || k.i, r.owner_id, r.owner_role, CAST($4 AS BIGINT) + k.i, CAST($4 AS BIGINT) + k.i, '', '', 1, r.data, r.data_bytes
			FROM records r CROSS JOIN `+numbers+` WHERE r.tenant_id = $1 AND r.record_id = $2`, h.tenant, made, n, last)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
				SELECT v.tenant_id, v.entity, v.field, v.value, v.reach, CAST($4 AS BIGINT) + k.i, 0 FROM field_values v CROSS JOIN `+numbers+`
				WHERE v.tenant_id = $1 AND v.record_created_at = $2 AND (v.field = $5 OR v.field = 'stage' OR v.field LIKE 'stage#%')`, h.tenant, of, n, last, at)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE tenant_clocks SET last = last + $2 WHERE tenant_id = $1`, h.tenant, n)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// The cost of a list of controlled records depends on what its viewer sees: with
// twenty times as many hidden records, and parents without records, neither
// engine looks at more rows.
func TestAListBelowParentsDoesNotTellWhatIsHidden(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			d := dbtest.OpenConfig(t, config)
			few, many := dealerOf(t, d, "few"), dealerOf(t, d, "many")
			few.wholesale(1_000)
			many.wholesale(20_000)
			count := func(h *house, list []statement) int { return h.onPostgres(list) }
			if engine == db.SQLite {
				counter := newRowCounter(t, config.Dir)
				count = func(h *house, list []statement) int { return counter.count(h.tenant, list) }
			} else {
				err := d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
					_, err := tx.Exec(t.Context(), `ANALYZE`)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			won := records.Filter{Field: "stage", Value: "won"}
			for _, name := range parentSeers {
				for about, filter := range map[string][]records.Filter{"no filter": nil, "a filter": {won}} {
					for _, limit := range []int{7, 50} {
						cost := func(h *house) int {
							var read []statement
							s := records.Spy(h.as(name), func(sql string, args []any) { read = append(read, statement{sql, slices.Clone(args)}) })
							page, err := s.List(t.Context(), "line", records.Query{Limit: limit, Filter: filter})
							if err != nil || page.Count != min(limit, 20) {
								t.Fatalf("%s, %s: %d records, %v", name, about, page.Count, err)
							}
							return count(h, read)
						}
						a, b := cost(few), cost(many)
						t.Logf("%s, %s by %d: %d rows, %d", name, about, limit, a, b)
						if a < min(limit, 20) || b > a+a/4 {
							t.Errorf("%s, %s by %d: %d rows among 1,000 hidden, %d among 20,000", name, about, limit, a, b)
						}
					}
				}
			}
		})
	}
}
