package openapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/openapi"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// acme has fields of every type, endpoints of every mode, and users who may do
// different things.
const acme = `
tenant: acme
display_name: Acme "GmbH" <b>
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true, activation_mode: app_managed, default_permission_set: portal}
entities:
  - name: account
    fields: [{name: name, type: text, required: true, unique: true}]
  - name: create
    label: "An entity with the name of an operation"
    fields: [{name: get, type: text}]
  - name: contact
    fields:
      - {name: first_name, type: text, required: true}
      - {name: score, type: number, indexed: true}
      - {name: vip, type: boolean, indexed: true}
      - {name: born, type: date}
      - {name: seen, type: datetime}
      - {name: stage, type: select, options: [new, "won't", "日本"], indexed: true}
      - {name: tags, type: multiselect, options: [a, b]}
      - {name: account, type: reference, entity: account}
      - {name: secret_score, type: number, indexed: true}
      - {name: extra, type: json}
user_fields: [{name: company, type: text}, {name: level, type: number}]
roles: [{name: sales}]
permission_sets:
  - name: sales
    entities:
      contact: {create: true, read: true, update: true, fields: {secret_score: {read: false}, born: {read: true, edit: false}}}
      account: {read: true}
  - name: writer
    entities: {contact: {create: true}, account: {create: true, delete: true, fields: {name: {read: true, edit: false}}}}
  - name: portal
    entities: {contact: {read: true, fields: {first_name: {read: true}}}, user: {read: true, update: true, fields: {level: {read: false}}}}
  - name: security
    system: [manage_permissions]
  - name: builder
    system: [manage_endpoints, can_manage_external_users]
logic_components:
  - {name: total, inputs: [{name: lines, type: json, required: true}, {name: note, type: text}], outputs: [{name: sum, type: number}], source: "export default function handler() { return 1 }"}
  - {name: verify, source: "export default function handler() { throw 1 }"}
automations:
  - {name: lead, trigger: http.request, input_schema: [{name: email, type: text, required: true, pattern: "^.+@"}, {name: score, type: number}],
     outputs: [{name: contact, type: text}], nodes: [{id: out, type: output, set: {contact: "{{inputs.email}}"}}]}
custom_endpoints:
  - {slug: create, target: {component: total}, external_users: true}
  - {slug: inside, target: {automation: lead}}
  - {slug: hook, target: {automation: lead}, auth: token}
  - {slug: receipt-hook, target: {automation: lead}, auth: token, reply: receipt}
  - {slug: shop, target: {automation: lead}, auth: signed, verifier: verify, webhook_secret: "a secret of the shop"}
  - {slug: page, target: {component: total}, auth: signed, verifier: verify, webhook_secret: "a secret of the page", allow_get: true}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: sam@acme.example, name: Sam, role: sales, permission_sets: [sales]}
  - {email: wim@acme.example, name: Wim, permission_sets: [writer]}
  - {email: bea@acme.example, name: Bea, permission_sets: [builder]}
  - {email: nina@acme.example, name: Nina}
  - {email: paula@acme.example, name: Paula, permission_sets: [security]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal]}
`

var people = []string{"olivia@acme.example", "sam@acme.example", "wim@acme.example", "bea@acme.example", "nina@acme.example", "eva@customer.example"}

// described is the part of a document that the tests look at.
type described struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct{ ReadOnly bool }
			Required   []string
		}
	}
}

func (d *described) has(method, path string) bool {
	return d.Paths[path][strings.ToLower(method)] != nil
}

func describe(t *testing.T, w *gatetest.World, email string) ([]byte, *described) {
	t.Helper()
	viewer := access.System(w.Config("acme"), "test")
	if email != "" {
		var err error
		viewer, err = access.NewDirectory(w.DB()).Viewer(t.Context(), w.Config("acme"), user.ID(w.UserID("acme", email)), true)
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := openapi.Describe(t.Context(), w.DB().For("acme"), viewer)
	if err != nil {
		t.Fatal(err)
	}
	d := &described{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return text, d
}

// TestNoCoreIsHeldWhileADocumentWaitsForAConnection: those who have all of them may be waiting
// for that core.
func TestNoCoreIsHeldWhileADocumentWaitsForAConnection(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	cores := admission.NewCores(1)
	serve := openapi.New(w.DB(), access.NewDirectory(w.DB()), nil, cores).AdminRoutes()[0].Handler
	call := &httpapi.Authed{Call: &httpapi.Call{Request: httptest.NewRequest(http.MethodGet, "/", nil), Config: w.Config("acme")}, Viewer: access.System(w.Config("acme"), "test")}
	free := make(chan struct{})
	var all sync.WaitGroup
	held := 0
	for h := w.DB().Unscoped("test"); ; held++ { // until none is free
		got := make(chan struct{})
		all.Go(func() {
			err := h.Query(t.Context(), "SELECT 1", func(db.Row) error { close(got); <-free; return nil })
			if err != nil {
				t.Error(err)
			}
		})
		select {
		case <-got:
			continue
		case <-time.After(50 * time.Millisecond):
		}
		break
	}
	all.Go(func() {
		if _, err := serve(t.Context(), call); err != nil {
			t.Error(err)
		}
	})
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		work, err := cores.Start(ctx, "another tenant")
		work.Stop()
		cancel()
		if err != nil {
			t.Errorf("with %d connections in use the core is, too: %v", held, err)
		}
	}
	close(free)
	all.Wait()
}

// TestDocumentsAreValid gives the documents of several kinds of user to a validator and
// to openapi-typescript, whose output must compile.
func TestDocumentsAreValid(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	files := []string{"check.mjs"}
	for i, email := range []string{"", "sam@acme.example", "wim@acme.example", "eva@customer.example"} {
		text, _ := describe(t, w, email)
		again, _ := describe(t, w, email)
		if !bytes.Equal(text, again) {
			t.Errorf("%s: two documents of one configuration differ", email)
		}
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	install(t)
	run(t, "check", "node", files...)
}

// TestADocumentSaysWhatTheAPIDoes compares documents with the API: an operation is
// described exactly when the user's calls of it are not refused for want of a
// permission.
func TestADocumentSaysWhatTheAPIDoes(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		const unknown = "01a1fcd5-0000-7000-8000-000000000000"
		entities := []string{"account", "contact", "create", "user"}
		cells := 0
		for _, email := range people {
			_, doc := describe(t, w, email)
			actor := w.Key(email)
			for _, entity := range entities {
				for _, op := range [][2]string{
					{http.MethodGet, "/data/{e}"}, {http.MethodPost, "/data/{e}"}, {http.MethodGet, "/data/{e}/{id}"}, {http.MethodPatch, "/data/{e}/{id}"},
					{http.MethodDelete, "/data/{e}/{id}"}, {http.MethodGet, "/data/{e}/{id}/shares"}, {http.MethodPost, "/data/{e}/{id}/shares"},
				} {
					path, body := strings.ReplaceAll(op[1], "{e}", entity), ""
					if op[0] == http.MethodPost || op[0] == http.MethodPatch {
						body = "{}"
					}
					got := actor.Do(op[0], openapi.Base+strings.ReplaceAll(path, "{id}", unknown), body)
					refused := got.Code() == "FORBIDDEN" || entity == schema.UserEntity && strings.HasSuffix(path, "/shares")
					if described := doc.has(op[0], path); described == refused {
						t.Errorf("%s: %s %s answers %d %s; described: %v", email, op[0], path, got.Status, got.Code(), described)
					}
					cells++
				}
			}
			for _, slug := range []string{"create", "inside"} {
				got := actor.Post(openapi.Base+"/custom/"+slug, `{"lines": [], "email": "a@b.example"}`)
				if described := doc.has(http.MethodPost, "/custom/"+slug); described != (got.Status == 200) {
					t.Errorf("%s: custom/%s answers %d %s; described: %v", email, slug, got.Status, got.Code(), described)
				}
				cells++
			}
		}
		t.Logf("%d cells", cells)
	})
}

// TestADocumentNamesWhatTheUserMaySee lists what the documents of some users name.
func TestADocumentNamesWhatTheUserMaySee(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	text, doc := describe(t, w, "sam@acme.example")
	record := doc.Components.Schemas["contact"]
	if got, want := strings.Join(record.Required, " "), "id owner_id created_at updated_at first_name score vip born seen stage tags account extra"; got != want {
		t.Errorf("sam reads %s, want %s", got, want)
	}
	if !record.Properties["born"].ReadOnly || record.Properties["score"].ReadOnly {
		t.Errorf("born and score: %+v", record.Properties)
	}
	create := doc.Components.Schemas["contact.create"]
	if slices.Contains(slices.Collect(maps.Keys(create.Properties)), "born") || !slices.Equal(create.Required, []string{"first_name"}) {
		t.Errorf("sam creates %+v", create)
	}
	for _, hidden := range []string{"secret_score", "/custom/hook", "/custom/shop", `"/data/create"`, "users/{id}/activate", "owner_id\",\"description\":\"The user who"} {
		if bytes.Contains(text, []byte(hidden)) {
			t.Errorf("sam's document has %s", hidden)
		}
	}
	if text, _ := describe(t, w, "bea@acme.example"); !bytes.Contains(text, []byte(`{"type":"string","pattern":"^.+@"}`)) {
		t.Error("an input's pattern is not described")
	}
	if text, _ := describe(t, w, "bea@acme.example"); !bytes.Contains(text, []byte("/custom/shop")) || !bytes.Contains(text, []byte("users/{id}/activate")) ||
		bytes.Contains(text, []byte("a secret of the shop")) {
		t.Error("the document of a user with manage_endpoints lacks a webhook, or tells a secret")
	}
	if _, doc := describe(t, w, "bea@acme.example"); !doc.has("GET", "/custom/page") || doc.has("GET", "/custom/shop") || doc.has("GET", "/custom/create") {
		t.Error("GET is described where it does not exist, or not where it does")
	}
	if text, doc := describe(t, w, "eva@customer.example"); !doc.has("POST", "/custom/create") || doc.has("POST", "/custom/inside") ||
		!doc.has("GET", "/auth/me") || bytes.Contains(text, []byte("/custom/hook")) {
		t.Error("the document of an external user")
	}
	if _, err := openapi.Document(access.Viewer{}, nil); err == nil {
		t.Error("the zero viewer gets a document")
	}
}

// TestEveryRouteIsDescribed compares the owner's document with the golden list of
// routes.
func TestEveryRouteIsDescribed(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	_, doc := describe(t, w, "olivia@acme.example")
	golden, err := os.ReadFile("../server/testdata/surface.golden")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(golden)) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasPrefix(words[1], openapi.Base+"/") {
			continue
		}
		seen++
		path := strings.NewReplacer("{entity}", "contact", "{slug}", "page").Replace(strings.TrimPrefix(words[1], openapi.Base))
		if !doc.has(words[0], path) {
			t.Errorf("%s %s is not described", words[0], path)
		}
	}
	if seen < 20 {
		t.Errorf("only %d routes were found", seen)
	}
}

// TestEveryFieldTypeIsDescribed fails for a field type that the document knows
// nothing about.
func TestEveryFieldTypeIsDescribed(t *testing.T) {
	for _, kind := range schema.Types {
		if openapi.Describes(kind) {
			continue
		}
		t.Errorf("fields of type %s have no schema", kind)
	}
}

// install installs the packages of check/package-lock.json if they are missing. Tests
// that run at the same time, in any process, wait for each other.
func install(t *testing.T) {
	t.Helper()
	lock, err := os.Open("check/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(lock.Name())
	if err != nil {
		t.Fatal(err)
	}
	const stamp = "check/node_modules/.installed"
	want := fmt.Sprintf("%x", sha256.Sum256(text))
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	run(t, "", "../../scripts/need", "npm")
	run(t, "check", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.WriteFile(stamp, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	t.Logf("%s", out)
}

// TestTheConsoleAsksForDocuments checks who gets whose.
func TestTheConsoleAsksForDocuments(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		const route = "/admin/v1/openapi"
		sam, nina := "?as=user:"+w.UserID("acme", "sam@acme.example"), w.Staff("nina@acme.example")
		about := func(a *gatetest.Answer) string {
			var doc struct {
				Data struct{ Info struct{ Description string } }
			}
			if err := json.Unmarshal(a.Want(200, "").Body, &doc); err != nil {
				t.Fatal(err)
			}
			_, who, _ := strings.Cut(doc.Data.Info.Description, "What ")
			who, _, _ = strings.Cut(who, " ")
			return who
		}
		for _, c := range []struct {
			as    *gatetest.Actor
			query string
			want  string
		}{
			{nina, "", "nina@acme.example"}, {w.Staff("sam@acme.example"), sam, "sam@acme.example"},
			{w.Staff("olivia@acme.example"), sam, "sam@acme.example"}, {w.Staff("paula@acme.example"), sam, "sam@acme.example"},
		} {
			if got := about(c.as.Get(route + c.query)); got != c.want {
				t.Errorf("%s: the document is about %s, want %s", c.query, got, c.want)
			}
		}
		hidden := nina.Get(route+sam).Want(404, "NOT_FOUND")
		if unknown := nina.Get(route+"?as=user:nobody").Want(404, "NOT_FOUND"); string(unknown.Body) != string(hidden.Body) {
			t.Errorf("%s and %s", unknown.Body, hidden.Body)
		}
		w.Staff("bea@acme.example").Get(route+sam).Want(404, "NOT_FOUND")
		w.Staff("olivia@acme.example").Get(route+"?as=key:nothing").Want(404, "NOT_FOUND")
		for _, bad := range []string{"?as=sam", "?as=user:", "?as=role:x", "?by=me"} {
			w.Staff("olivia@acme.example").Get(route+bad).Want(400, "VALIDATION")
		}
		w.Key("sam@acme.example").Get(route).Want(401, "UNAUTHORIZED")
	})
}
