package records_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// seers creates a tenant in which each user but olivia and ada sees records in
// one way.
func seers(t testing.TB, d *db.DB, tenantID tenant.ID) *house {
	h := likeAcme(t, d, tenantID)
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		var errs []error
		for _, role := range []string{"ruled", "matched", "wide"} {
			errs = append(errs, access.PutRole(ctx, tx, access.Role{Name: role}))
		}
		for i := range 250 {
			errs = append(errs, access.PutRole(ctx, tx, access.Role{Name: fmt.Sprintf("w%d", i), Parent: "wide"}))
		}
		errs = append(errs, schema.PutEntity(ctx, tx, entity("contact", "name text searchable", "email text unique", "score number indexed",
			"stage select indexed", "account reference:account", "note text searchable", "extra json")),
			access.PutRule(ctx, tx, &access.SharingRule{Entity: "contact", OwnedByRole: "w0", ShareWithRole: "ruled", Access: access.ReadOnly}),
			access.PutRule(ctx, tx, &access.SharingRule{Entity: "contact", ShareWithRole: "matched", Access: access.ReadOnly,
				Where: []access.Condition{{Field: "name", Value: jsontext.Value(`"m"`)}}}))
		return errors.Join(errs...)
	})
	for name, role := range map[string]string{"owning": "", "sharing": "", "leading": "support", "rita": "ruled", "mat": "matched", "wanda": "wide", "w": "w0"} {
		h.user(name, user.User{Role: role, Sets: []string{"work"}})
	}
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return access.PutRole(ctx, tx, access.Role{Name: "below", Parent: "support"})
	})
	h.user("lead", user.User{Role: "below", Sets: []string{"work"}})
	return h
}

// viewing adds vera, who sees contacts by a rule that matches the viewer. All
// hidden contacts belong to another member of the same rule.
func (h *house) viewing() {
	rule := &access.SharingRule{Entity: "contact", ShareWith: access.InternalUsers, Access: access.ReadOnly,
		Where: []access.Condition{{Field: "account", Viewer: "firm"}}}
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		firm := &schema.Field{Name: "firm", Type: schema.Reference, Target: "account", Managed: true}
		return errors.Join(schema.PutUserFields(ctx, tx, []*schema.Field{firm}), access.PutRule(ctx, tx, rule))
	})
	for _, name := range []string{"firm", "other firm"} {
		h.ids[name] = id(h.create(h.as("olivia"), "account", `{"name": "a"}`))
	}
	h.ids["member"] = access.Member(rule.StoredAs(), []string{h.ids["other firm"]})
	h.user("vera", user.User{Sets: []string{"work"}, Custom: jsontext.Value(fmt.Sprintf(`{"firm#managed": %q}`, h.ids["firm"]))})
}

// seenBy lists the viewers, one for each way of seeing records.
var seenBy = []string{"owning", "sharing", "leading", "rita", "mat", "wanda"}

// scatter creates n records with stage won and score 1 that only olivia sees
// and, among them, 20 for each viewer. It writes the hidden records as the
// product does, but many at once.
func (h *house) scatter(n int) {
	const parts = 20
	ctx := context.Background()
	owners := map[string]string{"owning": "owning", "leading": "lead", "rita": "w", "mat": "ada", "sharing": "ada"}
	if h.ids["vera"] != "" {
		owners["vera"] = "ada"
	}
	for part := range parts {
		for viewer, owner := range owners {
			text := fmt.Sprintf(`{"stage": "won", "score": 1, "note": "Pump, North", "owner_id": %q`, h.ids[owner])
			if viewer == "mat" {
				text += `, "name": "m"`
			}
			if viewer == "vera" {
				text += fmt.Sprintf(`, "account": %q`, h.ids["firm"])
			}
			made := id(h.create(h.as("olivia"), "contact", text+"}"))
			if viewer == "sharing" {
				share := records.Share{Principal: access.UserPrincipal(user.ID(h.ids["sharing"])), Access: access.ReadOnly}
				if err := h.as("olivia").Share(ctx, "contact", made, share); err != nil {
					h.t.Fatal(describe(err))
				}
			}
		}
		if n > 0 {
			h.hide(part, n/parts)
		}
	}
}

func (h *house) hide(part, n int) {
	words := h.config().Schema.Entity("contact").Field("note").StoredAs() + "~"
	const numbers = `(WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < $3) SELECT i FROM k) k`
	err := h.d.Unscoped("test").Write(context.Background(), func(tx db.Tx) error {
		ctx, owner := context.Background(), h.ids["olivia"]
		var at int64
		err := tx.Query(ctx, `SELECT last FROM tenant_clocks WHERE tenant_id = $1`, func(r db.Row) error { at = r.Int(0); return nil }, h.tenant)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by, updated_by, version, data)
			SELECT $1, 'contact', CAST($2 AS TEXT) || '-' || k.i, $4, '', CAST($5 AS BIGINT) + k.i, CAST($5 AS BIGINT) + k.i, '', '', 1, '{"stage":"won","score":1,"note":"Pump, North"}'
			FROM `+numbers, h.tenant, strconv.Itoa(part), n, owner, at)
		reaches := []string{"", "o:" + owner}
		if member := h.ids["member"]; member != "" && err == nil {
			reaches = append(reaches, "m:"+member)
			_, err = tx.Exec(ctx, `UPDATE records SET data = $3`+tx.Dialect().JSON+` WHERE tenant_id = $1 AND created_at > $2`,
				h.tenant, at, fmt.Sprintf(`{"stage":"won","score":1,"note":"Pump, North","account":%q}`, h.ids["other firm"]))
			if err == nil {
				_, err = tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
					SELECT $1, 'contact', 'account', $2, '', CAST($4 AS BIGINT) + k.i, 0 FROM `+numbers, h.tenant, h.ids["other firm"], n, at)
			}
			if err == nil {
				_, err = tx.Exec(ctx, `INSERT INTO rule_matches (tenant_id, rule_id, record_created_at)
					SELECT $1, $2, CAST($4 AS BIGINT) + k.i FROM `+numbers, h.tenant, member, n, at)
			}
		}
		for _, of := range [][2]string{{"stage", "won"}, {"score", "1"}, {words, "pump"}, {words, "north"}} {
			field, value := of[0], of[1]
			for _, reach := range reaches {
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
					SELECT $1, 'contact', $2, $4, $6, CAST($5 AS BIGINT) + k.i, 0 FROM `+numbers, h.tenant, field, n, value, at, reach)
			}
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

// statement is a statement that a session read with.
type statement struct {
	sql  string
	args []any
}

// read returns the statements that a call reads with.
func (h *house) read(name string, call func(*records.Session)) (list []statement) {
	call(records.Spy(h.as(name), func(sql string, args []any) { list = append(list, statement{sql, slices.Clone(args)}) }))
	return list
}

// A filter on a unique field sends the database the same query whether the
// record that has the value is visible, hidden or absent.
func TestAUniqueFilterAsksTheSameOfHiddenAndAbsent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.create(h.as("sam"), "contact", `{"email": "mine", "stage": "won"}`)
		h.create(h.as("sue"), "contact", `{"email": "hidden", "stage": "won"}`)
		var first []string
		for email, count := range map[string]int{"mine": 1, "hidden": 0, "absent": 0} {
			var texts []string
			s := records.Spy(h.as("sam"), func(sql string, _ []any) { texts = append(texts, sql) })
			page, err := s.List(t.Context(), "contact", records.Query{Limit: 5, Filter: []records.Filter{{Field: "stage", Value: "won"}, {Field: "email", Value: email}}})
			if err != nil || page.Count != count {
				t.Fatalf("%s: %d, %v", email, page.Count, err)
			}
			if first == nil {
				first = texts
			}
			if !slices.Equal(first, texts) || len(texts) != 1 {
				t.Errorf("%s: %q, not %q", email, texts, first)
			}
		}
	})
}

// The migration that added the ways to the index derives them from the stored
// records.
func TestTheMigrationDerivesTheWays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := seers(t, d, "acme")
		h.scatter(0)
		account := id(h.create(h.as("olivia"), "account", `{"name": "a"}`))
		h.create(h.as("olivia"), "contact", fmt.Sprintf(`{"email": "e", "stage": "new", "account": %q}`, account))
		was := h.indexRows()
		text, err := os.ReadFile("../db/migrations/0006_filtered_reach.sql")
		if err != nil {
			t.Fatal(err)
		}
		types := strings.NewReplacer("{text}", "TEXT", "{clustered}", "WITHOUT ROWID")
		if d.Engine() == db.Postgres {
			types = strings.NewReplacer("{text}", `TEXT COLLATE "C"`, "{clustered}", "")
		}
		old := `CREATE TABLE before AS SELECT tenant_id, entity, field, value, record_created_at, is_unique FROM field_values WHERE reach = '' AND value <> '` + schema.Unset + `';
			DROP TABLE field_values; ALTER TABLE before RENAME TO field_values; CREATE INDEX field_values_unique ON field_values (tenant_id);`
		err = d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
			for part := range strings.SplitSeq(old+types.Replace(comments.ReplaceAllString(string(text), "")), ";") {
				if strings.TrimSpace(part) == "" {
					continue
				}
				if _, err := tx.Exec(t.Context(), part); err != nil {
					return fmt.Errorf("%s: %w", part, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if is := h.indexRows(); !slices.Equal(is, was) || len(is) < 500 {
			t.Errorf("%d index rows after the migration, %d before", len(is), len(was))
		}
	})
}

var comments = regexp.MustCompile(`(?m)--.*$`)

// indexRows returns the index rows of values that are set. It leaves out those of words,
// which the migration does not know.
func (h *house) indexRows() (rows []string) {
	err := h.d.Unscoped("test").Query(context.Background(), `SELECT tenant_id, entity, field, value, reach, record_created_at, is_unique
		FROM field_values WHERE value <> $1 AND field NOT LIKE '%~' ORDER BY tenant_id, entity, field, value, reach, record_created_at`, func(r db.Row) error {
		rows = append(rows, fmt.Sprint(r.Text(0), r.Text(1), r.Text(2), r.Text(3), r.Text(4), r.Int(5), r.Int(6)))
		return nil
	}, schema.Unset)
	if err != nil {
		h.t.Fatal(err)
	}
	return rows
}
