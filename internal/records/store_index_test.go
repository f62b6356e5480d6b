package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// indexed is a tenant that receives random writes.
type indexed struct {
	*house
	t         *rapid.T
	rules     []*access.SharingRule
	accountIn bool // account is indexed
	noteIn    bool // note is indexed
	emailIn   bool // email is indexed, beside being unique
	nameFound bool // name is searchable
	noteFound bool // note is searchable
}

// declare stores the entity type contact and the rules as they are now.
func (x *indexed) declare() {
	x.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		account, name, note, email := "account reference:account", "name text", "note text", "email text unique"
		if x.accountIn {
			account += " indexed"
		}
		if x.noteIn {
			note += " indexed"
		}
		if x.emailIn {
			email += " indexed"
		}
		if x.nameFound {
			name += " searchable"
		}
		if x.noteFound {
			note += " searchable"
		}
		errs := []error{schema.PutEntity(ctx, tx, entity("contact", name, email, "score number indexed",
			"stage select indexed", account, note, "extra json"))}
		config, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		for _, rule := range config.Rules {
			errs = append(errs, access.DeleteRule(ctx, tx, rule.ID()))
		}
		for _, rule := range x.rules {
			errs = append(errs, access.PutRule(ctx, tx, rule))
		}
		return errors.Join(errs...)
	})
}

func (x *indexed) draw(label string, list ...string) string {
	return rapid.SampledFrom(list).Draw(x.t, label)
}

func (x *indexed) person() string { return x.draw("person", "sam", "sue", "eva", "ada") }

// any returns the id of some record of a type, "" when there is none.
func (x *indexed) any(entity string) string {
	list := x.list(x.as("olivia"), entity)
	if len(list) == 0 {
		return ""
	}
	return id(rapid.SampledFrom(list).Draw(x.t, entity))
}

func (x *indexed) step() {
	switch rapid.IntRange(0, 11).Draw(x.t, "step") {
	case 0, 1, 2:
		x.write("contact")
	case 3, 4:
		if at := x.any("contact"); at != "" {
			x.may(x.as("olivia").Update(context.Background(), "contact", at, body(x.house.t, x.fields(false))))
		}
	case 5:
		kind := x.draw("type", "contact", "account", "account")
		if at := x.any(kind); at != "" {
			x.delete(x.as("olivia"), kind, at)
		}
	case 6, 7:
		x.share()
	case 8:
		x.reassign()
	case 9:
		x.changeRules()
	case 10:
		in := rapid.SampledFrom([]*bool{&x.accountIn, &x.noteIn, &x.emailIn, &x.nameFound, &x.noteFound}).Draw(x.t, "which")
		*in = !*in
		x.declare()
	case 11:
		x.unit()
	}
}

// may ignores an error that says that a unique value is taken.
func (x *indexed) may(_ records.Record, err error) {
	if err != nil && fault.CodeOf(err) != fault.Conflict {
		x.t.Fatal(describe(err))
	}
}

func (x *indexed) write(kind string) {
	text := `{"name": "a"}`
	if kind == "contact" {
		text = x.fields(true)
	}
	x.may(x.as("olivia").Create(context.Background(), kind, body(x.house.t, text)))
}

// fields draws a body for contact.
func (x *indexed) fields(fresh bool) string {
	text := fmt.Sprintf(`{"name": %s, "stage": %s, "score": %s, "note": %s`, x.draw("name", `"A b"`, `"B c, b"`, `""`, "null"), x.draw("stage", `"new"`, `"won"`, "null"),
		x.draw("score", "1", "2", "null"), x.draw("note", `"a"`, `"b"`, `"A, B"`, "null"))
	if at := x.any("account"); at != "" && rapid.Bool().Draw(x.t, "refer") {
		text += fmt.Sprintf(`, "account": %q`, at)
	}
	if rapid.IntRange(0, 3).Draw(x.t, "unique") == 0 {
		text += fmt.Sprintf(`, "email": "e%d"`, rapid.IntRange(0, 5).Draw(x.t, "email"))
	}
	if fresh || rapid.Bool().Draw(x.t, "owner") {
		text += fmt.Sprintf(`, "owner_id": %q`, x.ids[x.person()])
	}
	return text + "}"
}

func (x *indexed) share() {
	at := x.any("contact")
	if at == "" {
		return
	}
	to := access.RolePrincipal(x.draw("role", "ceo", "sales", "support"))
	if rapid.Bool().Draw(x.t, "to user") {
		to = access.UserPrincipal(user.ID(x.ids[x.person()]))
	}
	ctx, s := context.Background(), x.as("olivia")
	err := s.Unshare(ctx, "contact", at, to)
	if fault.CodeOf(err) == fault.NotFound || rapid.Bool().Draw(x.t, "share again") {
		level := access.Level(x.draw("level", "read", "edit"))
		err = s.Share(ctx, "contact", at, records.Share{Principal: to, Access: level})
	}
	if err != nil {
		x.t.Fatal(describe(err))
	}
}

func (x *indexed) reassign() {
	who, role := x.ids[x.person()], x.draw("role", "", "ceo", "sales", "junior")
	x.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		u, err := user.ByID(ctx, tx, user.ID(who))
		if err != nil {
			return err
		}
		config, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		u.Role = role
		return errors.Join(user.Update(ctx, tx, u), records.ReassignRole(ctx, tx, config, user.ID(who), role))
	})
}

func (x *indexed) changeRules() {
	if len(x.rules) > 0 && rapid.Bool().Draw(x.t, "drop") {
		x.rules = slices.Delete(x.rules, 0, 1)
		x.declare()
		return
	}
	rule := &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly}
	where := func(field, value string) {
		rule.Where = append(rule.Where, access.Condition{Field: field, Value: jsontext.Value(value)})
	}
	of := func(field, viewer string) {
		rule.Where = append(rule.Where, access.Condition{Field: field, Viewer: viewer})
	}
	switch at := x.any("account"); x.draw("rule", "stage", "account", "both", "of the viewer", "two of the viewer", "of the viewer and a value",
		"the record itself", "the record itself and of the viewer") {
	case "of the viewer":
		of("account", "firm")
	case "two of the viewer":
		of("account", "firm")
		of("score", "points")
	case "of the viewer and a value":
		of("score", "points")
		where("stage", `"won"`)
	case "the record itself":
		of("id", "friends")
	case "the record itself and of the viewer":
		of("account", "firm")
		of("id", "friends")
	case "stage":
		where("stage", `"won"`)
	case "account":
		where("account", fmt.Sprintf("%q", at))
	default:
		where("score", "1")
		where("stage", `"won"`)
	}
	x.rules = slices.DeleteFunc(x.rules, func(had *access.SharingRule) bool { return had.ID() == rule.ID() })
	x.rules = append(x.rules, rule)
	x.declare()
}

// unit changes several records in one transaction, including deletions.
func (x *indexed) unit() {
	ctx, config := context.Background(), x.config()
	v, err := x.dir.Viewer(ctx, config, user.ID(x.ids["olivia"]), false)
	if err != nil {
		x.t.Fatal(err)
	}
	u := x.store.Begin(config)
	part := u.As(v)
	if at := x.any("contact"); at != "" {
		for range 2 {
			x.may(part.Update(ctx, "contact", at, body(x.house.t, x.fields(false))))
		}
	}
	if at := x.any("account"); at != "" && rapid.Bool().Draw(x.t, "delete") {
		if err := part.Delete(ctx, "account", at); err != nil {
			x.t.Fatal(describe(err))
		}
	}
	x.may(part.Create(ctx, "contact", body(x.house.t, `{"stage": "won", "note": "b"}`)))
	if err := u.Commit(ctx, nil); err != nil {
		x.t.Fatal(describe(err))
	}
}

// compare derives the index rows and rule matches of all contacts and compares
// them with the stored ones.
func (x *indexed) compare() {
	ctx, h, want := context.Background(), x.d.For(x.tenant), map[string]bool{}
	add := func(format string, args ...any) { want[fmt.Sprintf(format, args...)] = true }
	shared := map[string][]string{}
	read := func(sql string, each func(db.Row)) {
		if err := h.Query(ctx, sql, func(r db.Row) error { each(r); return nil }); err != nil {
			x.t.Fatal(err)
		}
	}
	read(`SELECT record_id, principal FROM shares WHERE tenant_id = $1`, func(r db.Row) {
		shared[r.Text(0)] = append(shared[r.Text(0)], r.Text(1))
	})
	contact := x.config().Schema.Entity("contact")
	read(`SELECT r.record_id, r.owner_id, r.created_at, r.data, u.role FROM records r JOIN users u
		ON u.tenant_id = $1 AND u.user_id = r.owner_id WHERE r.tenant_id = $1 AND r.entity = 'contact'`, func(r db.Row) {
		values := map[string]jsontext.Value{}
		if err := json.Unmarshal([]byte(r.Text(3)), &values); err != nil {
			x.t.Fatal(err)
		}
		values["id"] = jsontext.Value(`"` + r.Text(0) + `"`)
		ways := []string{"o:" + r.Text(1)}
		if r.Text(4) != "" {
			ways = append(ways, "r:"+r.Text(4))
		}
		for _, p := range shared[r.Text(0)] {
			ways = append(ways, "s:"+p)
		}
		for _, rule := range x.rules {
			name, keys := rule.ID(), []string{}
			for _, c := range rule.Where {
				switch key, set := contact.Comparand(c.Field).Key(values[c.Field]); {
				case !set || c.Viewer == "" && string(values[c.Field]) != string(c.Value):
					name = ""
				case c.Viewer != "":
					keys = append(keys, key)
				}
			}
			if name == "" {
				continue
			}
			if len(keys) > 0 {
				name = access.Member(name, keys)
			}
			ways = append(ways, "m:"+name)
			add("match %s of %d", name, r.Int(2))
		}
		for _, f := range contact.Fields {
			if f.Searchable {
				for _, word := range plainWords(string(values[f.Name])) {
					for _, way := range append([]string{""}, ways...) {
						add("%s=%s for %q of %d, unique false", f.StoredAs()+"~", word, way, r.Int(2))
					}
				}
			}
			if !f.Keyed() {
				continue
			}
			key, set := f.IndexKey(values[f.Name])
			if !set && !f.Indexed {
				continue
			}
			if !set {
				key = schema.Unset
			}
			add("%s=%s for %q of %d, unique %v", f.StoredAs(), key, "", r.Int(2), f.Unique && set)
			for _, way := range ways {
				if f.Indexed {
					add("%s=%s for %q of %d, unique false", f.StoredAs(), key, way, r.Int(2))
				}
			}
		}
	})
	there := func(row string) {
		if !want[row] {
			x.t.Errorf("is there and should not be: %s", row)
		}
		delete(want, row)
	}
	read(`SELECT field, value, reach, record_created_at, is_unique FROM field_values WHERE tenant_id = $1`, func(r db.Row) {
		there(fmt.Sprintf("%s=%s for %q of %d, unique %v", r.Text(0), r.Text(1), r.Text(2), r.Int(3), r.Bool(4)))
	})
	read(`SELECT rule_id, record_created_at FROM rule_matches WHERE tenant_id = $1`, func(r db.Row) {
		there(fmt.Sprintf("match %s of %d", r.Text(0), r.Int(1)))
	})
	for row := range want {
		x.t.Errorf("is missing: %s", row)
	}
	if x.t.Failed() {
		x.t.FailNow()
	}
}
