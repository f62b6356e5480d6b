package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// house is the record store over a test database, with one tenant that tests
// configure.
type house struct {
	t      testing.TB
	d      *db.DB
	clk    clock.Clock
	dir    *access.Directory
	store  *records.Store
	tenant tenant.ID
	ids    map[string]string // user ids, by name
}

func newHouse(t testing.TB, d *db.DB, clk clock.Clock, tenantID tenant.ID) *house {
	dir := access.NewDirectory(d)
	return &house{
		t: t, d: d, clk: clk, dir: dir, tenant: tenantID, ids: map[string]string{},
		store: records.New(d, dir, clk, []byte("a key of thirty-two bytes or more")),
	}
}

// acme creates a house with a role tree (ceo over sales over junior, and ceo
// over support), the types account and contact, and permission sets for several
// kinds of work.
func acme(t testing.TB, d *db.DB) *house { return likeAcme(t, d, "acme") }

func likeAcme(t testing.TB, d *db.DB, tenantID tenant.ID) *house {
	h := newHouse(t, d, clock.System(), tenantID)
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(
			access.PutRole(ctx, tx, access.Role{Name: "ceo"}),
			access.PutRole(ctx, tx, access.Role{Name: "sales", Parent: "ceo"}),
			access.PutRole(ctx, tx, access.Role{Name: "junior", Parent: "sales"}),
			access.PutRole(ctx, tx, access.Role{Name: "support", Parent: "ceo"}),
			putTypes(ctx, tx),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "work", Entities: map[string]access.EntityGrant{
				"contact": {Create: true, Read: true, Update: true, Delete: true},
				"account": {Create: true, Read: true, Update: true, Delete: true},
			}}),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "all", AllEntityAccess: true}),
		)
	})
	h.user("olivia", user.User{Owner: true})
	h.user("ada", user.User{Sets: []string{"all"}})
	h.user("sam", user.User{Role: "sales", Sets: []string{"work"}})
	h.user("sue", user.User{Role: "sales", Sets: []string{"work"}})
	h.user("eva", user.User{Type: user.External, Role: "support", Sets: []string{"work"}})
	return h
}

func putTypes(ctx context.Context, tx tenant.ConfigTx) error {
	return errors.Join(
		schema.PutEntity(ctx, tx, entity("account", "name text")),
		schema.PutEntity(ctx, tx, entity("contact", "name text", "email text unique", "score number indexed",
			"stage select indexed", "account reference:account", "note text", "extra json")),
	)
}

// entity declares a type whose fields are written "name type[:target] [unique|indexed|searchable|required]…".
func entity(name string, fields ...string) *schema.Entity {
	e := &schema.Entity{Name: name, Label: name, Sharing: schema.Private}
	for _, text := range fields {
		word := strings.Fields(text)
		kind, target, _ := strings.Cut(word[1], ":")
		f := &schema.Field{
			Name: word[0], Type: schema.Type(kind), Target: target, Unique: slices.Contains(word, "unique"),
			Indexed: slices.Contains(word, "indexed"), Searchable: slices.Contains(word, "searchable"), Required: slices.Contains(word, "required"),
		}
		if f.Type == schema.Select || f.Type == schema.Multiselect {
			f.Options = []string{"new", "won", "lost"}
		}
		e.Fields = append(e.Fields, f)
	}
	return e
}

// change runs one change of the tenant's configuration, as apply does.
func (h *house) change(fn func(context.Context, tenant.ConfigTx) error) error {
	ctx := context.Background()
	return tenant.Configure(ctx, h.d.For(h.tenant), "test", h.clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		before, err := access.Load(ctx, tx)
		if fault.CodeOf(err) == fault.NotFound {
			before = &access.Config{Schema: schema.New(nil, nil)}
			err = tenant.Put(ctx, tx, &tenant.Tenant{ID: h.tenant, Hosts: []string{string(h.tenant) + ".localhost"}, Settings: tenant.DefaultSettings()}, 1)
		}
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		log.Record("test", "change", nil, "made")
		after, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		return records.Reshape(ctx, tx, before, after)
	})
}

func (h *house) configure(fn func(context.Context, tenant.ConfigTx) error) {
	h.t.Helper()
	if err := h.change(fn); err != nil {
		h.t.Fatalf("configure %s: %v", h.tenant, err)
	}
}

// user adds a user with the role, type and sets of u.
func (h *house) user(name string, u user.User) {
	h.t.Helper()
	u.ID, u.Name, u.Email, u.Active = user.ID(clock.NewID(h.clk.Now())), name, name+"@acme.example", true
	if u.Type == "" {
		u.Type = user.Internal
	}
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) (err error) {
		if u.CreatedAt, err = tenant.Tick(ctx, tx, clock.Micros(h.clk.Now())); err != nil {
			return err
		}
		return user.Insert(ctx, tx, &u)
	})
	h.ids[name] = string(u.ID)
}

// set creates a permission set and adds it to those of a user.
func (h *house) set(name string, p access.PermissionSet) {
	h.t.Helper()
	p.Name = "set of " + name
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		u, err := user.ByID(ctx, tx, user.ID(h.ids[name]))
		if err != nil {
			return err
		}
		u.Sets = append(u.Sets, p.Name)
		return errors.Join(access.PutPermissionSet(ctx, tx, &p), user.Update(ctx, tx, u))
	})
}

func (h *house) config() *access.Config {
	h.t.Helper()
	c, err := h.dir.Current(context.Background(), h.tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// as returns the store as the user with that name or id may use it.
func (h *house) as(name string) *records.Session {
	h.t.Helper()
	return h.store.As(h.viewer(name))
}

func (h *house) viewer(name string) access.Viewer {
	h.t.Helper()
	id := name
	if known := h.ids[name]; known != "" {
		id = known
	}
	v, err := h.dir.Viewer(context.Background(), h.config(), user.ID(id), false)
	if err != nil {
		h.t.Fatalf("viewer %s: %v", name, err)
	}
	return v
}

func (h *house) system() *records.Session { return h.store.As(access.System(h.config(), "test")) }

// body returns a JSON object as the members of a request.
func body(t testing.TB, text string) []records.Member {
	t.Helper()
	var members []records.Member
	dec := jsontext.NewDecoder(strings.NewReader(text))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		name, err1 := dec.ReadToken()
		key := name.String()
		value, err2 := dec.ReadValue()
		members, err = append(members, records.Member{Name: key, Value: value.Clone()}), errors.Join(err1, err2)
	}
	if err != nil {
		t.Fatalf("body %s: %v", text, err)
	}
	return members
}

// create, update, get and delete make a call that must succeed. All but delete
// return the record.
func (h *house) create(s *records.Session, entity, text string) map[string]any {
	h.t.Helper()
	r, err := s.Create(context.Background(), entity, body(h.t, text))
	if err != nil {
		h.t.Fatalf("create %s %s: %v", entity, text, describe(err))
	}
	return object(h.t, r)
}

func (h *house) update(s *records.Session, entity, id, text string) map[string]any {
	h.t.Helper()
	r, err := s.Update(context.Background(), entity, id, body(h.t, text))
	if err != nil {
		h.t.Fatalf("update %s %s: %v", entity, text, describe(err))
	}
	return object(h.t, r)
}

func (h *house) get(s *records.Session, entity, id string) map[string]any {
	h.t.Helper()
	r, err := s.Get(context.Background(), entity, id)
	if err != nil {
		h.t.Fatalf("get %s: %v", entity, describe(err))
	}
	return object(h.t, r)
}

func (h *house) delete(s *records.Session, entity, id string) {
	h.t.Helper()
	if err := s.Delete(context.Background(), entity, id); err != nil {
		h.t.Fatalf("delete %s: %v", entity, describe(err))
	}
}

// list returns all records of a list that fits one page.
func (h *house) list(s *records.Session, entity string, filter ...records.Filter) []map[string]any {
	h.t.Helper()
	p, err := s.List(context.Background(), entity, records.Query{Limit: 200, Filter: filter})
	if err != nil {
		h.t.Fatalf("list %s: %v", entity, describe(err))
	}
	return objects(h.t, p.Records)
}

func id(record map[string]any) string { return record["id"].(string) }

func createdAt(record map[string]any) string { return record["created_at"].(string) }

func object(t testing.TB, r []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(r, &m); err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return m
}

func objects(t testing.TB, list []byte) []map[string]any {
	t.Helper()
	var m []map[string]any
	if err := json.Unmarshal(list, &m); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return m
}

// want checks an error: its code and, if given, the names in details.fields.
func want(t testing.TB, err error, code fault.Code, fields ...string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", describe(err), code)
	}
	if len(fields) == 0 {
		return
	}
	named, _ := e.Details["fields"].(map[string]string)
	slices.Sort(fields)
	if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, fields) {
		t.Fatalf("%v names the fields %v, want %v", describe(err), got, fields)
	}
}

func describe(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return fmt.Sprint(e, " ", e.Details)
	}
	return fmt.Sprint(err)
}

// keys counts the indexed values of a field.
func (h *house) keys(entity, field string) (n int64) {
	h.t.Helper()
	err := h.d.For(h.tenant).Query(context.Background(), `SELECT count(*) FROM field_values
		WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND reach = ''`, func(r db.Row) error { n = r.Int(0); return nil }, entity, field)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}
