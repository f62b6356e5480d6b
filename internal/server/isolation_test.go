package server_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Two tenants have the same manifest and data, except that every text of each
// tenant contains that tenant's canary.

const twin = `
tenant: NAME
display_name: CANARY Inc.
hosts: [NAME.localhost]
public_api: {enabled: true}
entities:
  - name: account
    fields: [{name: name, type: text, required: true}]
  - name: contact
    fields:
      - {name: first_name, type: text, required: true}
      - {name: email, type: text, unique: true}
      - {name: code, type: text, unique: true}
      - {name: score, type: number, indexed: true}
      - {name: stage, type: select, options: [new, won]}
      - {name: account, type: reference, entity: account}
      - {name: extra, type: json}
user_fields: [{name: company, type: text}]
roles: [{name: boss}, {name: sales, parent: boss}]
permission_sets:
  - name: sales
    entities:
      contact: {create: true, read: true, update: true, delete: true}
      account: {create: true, read: true}
      user: {read: true, update: true}
  - name: reader
    entities: {contact: {read: true, fields: {extra: {read: false}}}}
sharing_rules: [{entity: contact, where: {stage: won}, share_with_role: sales, access: edit}]
users:
  - {email: olivia@CANARY.example, name: Olivia CANARY, owner: true, role: boss}
  - {email: sam@CANARY.example, name: Sam CANARY, role: sales, permission_sets: [sales]}
  - {email: rita@CANARY.example, name: Rita CANARY, role: sales, permission_sets: [reader]}
`

// canary returns the mark that every text of a tenant contains.
func canary(tenant string) string { return "canary-of-" + tenant }

// call is a request that was made with one tenant's key at its own host.
type call struct {
	by                 string // whose key
	method, path, body string
	status             int
	id                 string // X-Request-Id
}

// script makes calls as one tenant and records them.
type script struct {
	t      *testing.T
	tenant string
	actors map[string]*gatetest.Actor
	calls  []call
}

func (s *script) do(by, method, path, body string, status int) *gatetest.Answer {
	s.t.Helper()
	a := s.actors[by].Do(method, path, body)
	if a.Status != status {
		s.t.Errorf("%s at %s: %d, want %d: %s", a.Call, s.tenant, a.Status, status, a.Body)
	}
	s.calls = append(s.calls, call{by, method, path, body, status, a.Header.Get("X-Request-Id")})
	return a
}

func newScript(t *testing.T, w *gatetest.World, of string) *script {
	w.Apply(strings.NewReplacer("NAME", of, "CANARY", canary(of)).Replace(twin))
	s := &script{t: t, tenant: of, actors: map[string]*gatetest.Actor{}}
	for _, name := range []string{"olivia", "sam", "rita"} {
		s.actors[name] = w.KeyOf(tenant.ID(of), of+".localhost", name+"@"+canary(of)+".example", origins("https://"+of+".example"))
	}
	return s
}

// play makes every kind of call, as each of the users.
func (s *script) play(w *gatetest.World) {
	c := canary(s.tenant)
	get := func(by, path string, status int) *gatetest.Answer { return s.do(by, "GET", path, "", status) }
	account := s.do("sam", "POST", "/public/v1/data/account", `{"name":"Account `+c+`"}`, 201).ID()
	var ids []string
	for _, n := range []string{"0", "1", "2", "3", "4"} {
		body := `{"first_name":"` + c + `","email":"` + n + `@` + c + `.example","code":"same-` + n + `","score":` + n + `,"stage":"new","account":"` +
			account + `","extra":{"note":"` + c + `"}}`
		ids = append(ids, s.do("sam", "POST", contact, body, 201).ID())
	}
	bosses := s.do("olivia", "POST", contact, `{"first_name":"Boss `+c+`","code":"boss"}`, 201).ID()
	for by, status := range map[string]int{"olivia": 200, "sam": 404, "rita": 404} {
		get(by, contact+"/"+bosses, status)
	}
	s.do("olivia", "PATCH", contact+"/"+bosses, `{"stage":"won"}`, 200)
	get("rita", contact+"/"+bosses, 200)
	for _, by := range []string{"olivia", "sam", "rita"} {
		get(by, me, 200)
		get(by, contact, 200)
		if next := get(by, contact+"?limit=1", 200).Meta().NextCursor; next != nil { // rita sees one record only
			get(by, contact+"?limit=1&cursor="+*next, 200)
			get(by, contact+"?limit=200&cursor="+*next, 200)
			get(by, contact+"?limit=1&filter[score]=1&cursor="+*next, 400)
		}
	}
	for _, filter := range []string{"filter[score]=1", "filter[email]=1@" + c + ".example", "filter[code]=same-2", "filter[code]=same-2&filter[score]=2", "filter[code]=none"} {
		get("sam", contact+"?"+filter, 200)
	}
	for _, id := range ids[:2] {
		get("sam", contact+"/"+id, 200)
		s.do("sam", "PATCH", contact+"/"+id, `{"first_name":"Changed `+c+`"}`, 200)
		s.do("sam", "PATCH", contact+"/"+id, `{"code":"same-3","email":"3@`+c+`.example"}`, 409)
		s.do("sam", "PATCH", contact+"/"+id, `{"account":"`+bosses+`"}`, 400)
		s.do("sam", "PATCH", contact+"/"+id, `{"id":"`+ids[4]+`","nothing":"`+c+`"}`, 400)
	}
	rita := w.UserID(tenant.ID(s.tenant), "rita@"+c+".example")
	s.do("sam", "PATCH", contact+"/"+ids[0], `{"owner_id":"`+rita+`"}`, 403)
	s.do("olivia", "PATCH", contact+"/"+ids[0], `{"owner_id":"`+rita+`"}`, 200)
	s.do("olivia", "POST", contact, `{"first_name":"`+c+`","owner_id":"`+rita+`"}`, 201)
	s.do("rita", "PATCH", contact+"/"+ids[0], `{"first_name":"`+c+`"}`, 403)
	s.do("rita", "POST", contact, `{"first_name":"`+c+`"}`, 403)
	get("sam", "/public/v1/data/account/"+account, 200)
	get("sam", "/public/v1/data/account", 200)
	get("rita", "/public/v1/data/account/"+account, 403)
	s.do("olivia", "DELETE", "/public/v1/data/account/"+account, "", 200)
	get("sam", contact+"/"+ids[1], 200)
	s.do("sam", "DELETE", contact+"/"+ids[4], "", 200)
	s.do("sam", "DELETE", contact+"/"+ids[4], "", 404)
	get("sam", contact+"/"+ids[4], 404)
	get("sam", "/public/v1/data/user", 200)
	get("sam", "/public/v1/data/user?limit=1", 200)
	get("sam", "/public/v1/data/user?filter[email]=rita@"+c+".example", 200)
	get("sam", "/public/v1/data/user/"+rita, 200)
	s.do("sam", "PATCH", "/public/v1/data/user/"+rita, `{"name":"Rita `+c+` the 2nd","company":"`+c+`"}`, 200)
	get("rita", "/public/v1/data/user/"+rita, 403)
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func TestATenantSeesNothingOfAnother(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		a, b := newScript(t, w, "alpha"), newScript(t, w, "beta")
		a.play(w)
		b.play(w)
		if len(a.calls) < 60 {
			t.Errorf("only %d calls to replay", len(a.calls))
		}
		own := func(s *script) (state []string) {
			for _, path := range []string{contact, "/public/v1/data/account", "/public/v1/data/user"} {
				state = append(state, string(s.actors["olivia"].Get(path).Want(200, "").Body))
			}
			return state
		}
		beforeA, beforeB := own(a), own(b)
		// The ids of A, which no answer to B may contain. Cursors are opaque:
		// the answer is 400, without an id.
		foreign := map[string]bool{}
		for _, id := range anyID.FindAllString(strings.Join(beforeA, ""), -1) {
			foreign[id] = true
		}
		for _, actor := range a.actors {
			foreign[actor.KeyID] = true
		}

		clean := func(what string, ans *gatetest.Answer) {
			t.Helper()
			all := ans.Header.Clone()
			all.Del("X-Request-Id")
			text := strings.ToLower(headerText(all) + string(ans.Body))
			if strings.Contains(text, canary("alpha")) || strings.Contains(text, "alpha.") {
				t.Errorf("%s: %s holds something of alpha: %s %s", what, ans.Call, headerText(all), ans.Body)
			}
			for _, id := range anyID.FindAllString(text, -1) {
				if foreign[id] {
					t.Errorf("%s: %s holds alpha's id %s: %s", what, ans.Call, id, ans.Body)
				}
			}
		}
		// As B would send it: with B's canary in place of A's, but with A's
		// ids and cursors.
		inBeta := strings.NewReplacer(canary("alpha"), canary("beta"))
		for _, c := range a.calls {
			path, body := inBeta.Replace(c.path), inBeta.Replace(c.body)
			actor := b.actors[c.by]
			ans := actor.Do(c.method, path, body)
			clean("B's key, A's ids", ans)
			if want := foreignStatus(c); ans.Status != want {
				t.Errorf("B's %s: %s: %d, want %d: %s", c.by, ans.Call, ans.Status, want, ans.Body)
			}
			// Each tenant's keys are invalid at the other.
			stranger := *a.actors[c.by]
			stranger.Host = "beta.localhost"
			ans = stranger.Do(c.method, path, body).Want(401, "UNAUTHORIZED")
			clean("A's key at B's host", ans)
			stranger = *b.actors[c.by]
			stranger.Host = "alpha.localhost"
			ans = stranger.Do(c.method, c.path, body).Want(401, "UNAUTHORIZED")
			clean("B's key at A's host", ans)
		}
		// Pages of A's origins cannot read B's answers.
		for _, path := range []string{me, contact} {
			clean("A's origin", b.actors["sam"].With("Origin", "https://other.example").Get(path).Want(403, "CORS_DENIED"))
			anyone := w.Anyone()
			anyone.Host = "beta.localhost"
			ask(anyone, "https://alpha.example", path).Want(403, "CORS_DENIED")
		}
		if !slices.Equal(beforeA, own(a)) {
			t.Error("B changed something of A")
		}
		if slices.Equal(beforeB, own(b)) {
			t.Error("B changed nothing of its own: the replay is no test")
		}
		log := w.AuditLog("beta")
		for _, e := range log {
			text := strings.ToLower(string(e.AppendJSON(nil)))
			if strings.Contains(text, canary("alpha")) || e.UserID != "" && foreign[e.UserID] {
				t.Errorf("beta's audit log holds something of alpha: %s", text)
			}
		}
		for _, c := range a.calls {
			if log[c.id] != nil {
				t.Errorf("beta's audit log has a request of alpha's: %s %s", c.method, c.path)
			}
		}
		if len(log) < 2*len(a.calls) {
			t.Errorf("beta's audit log has %d entries", len(log))
		}
		for _, line := range w.Nodes[0].Log.Lines(t) {
			user, _ := line["user_id"].(string)
			key, _ := line["api_key_id"].(string)
			if line["tenant"] == "beta" && (foreign[user] || foreign[key]) {
				t.Errorf("beta's line names alpha's user or key: %v", line)
			}
		}
	})
}

// foreignStatus returns the status that B gets for a call of A's: A's status
// where the call names nothing of A, else the status for something that does
// not exist.
func foreignStatus(c call) int {
	_, query, _ := strings.Cut(c.path, "?")
	segments := strings.Split(strings.TrimPrefix(c.path, "/public/v1/"), "/")
	switch {
	case strings.Contains(query, "cursor="):
		return http.StatusBadRequest
	case len(segments) == 3 && c.status == http.StatusForbidden && c.by == "rita":
		return http.StatusForbidden // the permission for the entity type is checked first
	case len(segments) == 3:
		return http.StatusNotFound
	case c.status == http.StatusCreated && anyID.MatchString(c.body):
		return http.StatusBadRequest // it refers to a record or user of A
	case c.status == http.StatusCreated && strings.Contains(c.body, "code"):
		return http.StatusConflict // its own record has the value already
	default:
		return c.status
	}
}

func headerText(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a strings.Builder does not fail
	return b.String()
}

// TestASharedIdentityStaysWithItsTenant: the same e-mail address, the same
// unique values, the same names of everything, and shares.
func TestASharedIdentityStaysWithItsTenant(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		both := map[string]*gatetest.Actor{}
		for _, name := range []string{"acme", "other"} {
			w.Apply(strings.NewReplacer("tenant: acme", "tenant: "+name, "acme.localhost", name+".localhost").Replace(acme))
			both[name] = w.KeyOf(tenant.ID(name), name+".localhost", "sam@acme.example")
		}
		ours := both["acme"].Post(contact, `{"first_name":"Ada","email":"ada@x.example","stage":"won"}`).Want(201, "").ID()
		theirs := both["other"].Post(contact, `{"first_name":"Ada","email":"ada@x.example"}`).Want(201, "").ID()
		w.Share("contact", ours, access.UserPrincipal(user.ID(w.UserID("acme", "rita@acme.example"))), access.Edit)
		w.Share("contact", ours, "role:support", access.Edit)
		rita := w.KeyOf("other", "other.localhost", "rita@acme.example")
		for _, id := range []string{ours, theirs} {
			rita.Get(contact+"/"+id).Want(404, "NOT_FOUND")
		}
		for tenant, id := range map[string]string{"acme": ours, "other": theirs} {
			list := both[tenant].Get(contact + "?filter[email]=ada@x.example").Records()
			if len(list) != 1 || list[0]["id"] != id {
				t.Errorf("%s finds %v", tenant, list)
			}
		}
		both["other"].Post("/public/v1/data/contact", `{"first_name":"Eve","account":"`+ours+`"}`).Want(400, "VALIDATION")
	})
}
