package data_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/data"
	"gatehouse/internal/gatetest"
)

// office has staff with different rights, roles, rules and an external user.
const office = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: contact
    fields:
      - {name: name, type: text, required: true}
      - {name: stage, type: select, options: [new, won], indexed: true}
      - {name: margin, type: number, indexed: true}
roles: [{name: ceo}, {name: manager, parent: ceo}, {name: rep, parent: manager}, {name: support, parent: ceo}, {name: customer}]
permission_sets:
  - name: work
    entities: {contact: {create: true, read: true, update: true, delete: true}}
  - name: half
    system: [manage_users]
    entities: {contact: {read: true, fields: {margin: {read: false}}}}
  - name: security
    system: [manage_permissions]
    entities: {contact: {read: true}}
  - name: portal
    entities: {contact: {read: true}}
sharing_rules:
  - {entity: contact, owned_by_role: rep, share_with_role: support, access: edit}
  - {entity: contact, where: {margin: 7}, share_with_role: customer, access: read}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: mia@acme.example, name: Mia Manager, role: manager, permission_sets: [half]}
  - {email: sam@acme.example, name: Sam Rep, role: rep, permission_sets: [work]}
  - {email: rosa@acme.example, name: Rosa Rep, role: rep, permission_sets: [work]}
  - {email: uma@acme.example, name: Uma Support, role: support, permission_sets: [work]}
  - {email: sid@acme.example, name: Sid Security, permission_sets: [security]}
  - {email: nina@acme.example, name: Nina Nobody}
  - {email: eva@customer.example, name: Eva, type: external, role: customer, permission_sets: [portal]}
`

const contacts = "/admin/v1/data/contact"

// TestTheConsolesRecordsAreThoseOfTheAPI sends each request to both: the answers are
// the same, but for the version.
func TestTheConsolesRecordsAreThoseOfTheAPI(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam := w.Key("sam@acme.example").Post(contact, `{"name": "Sam's", "margin": 7}`).Want(201, "").ID()
		for _, email := range []string{"olivia@acme.example", "mia@acme.example", "sam@acme.example", "rosa@acme.example", "nina@acme.example"} {
			staff, key := w.Staff(email), w.Key(email)
			for _, call := range [][3]string{
				{"GET", "", ""}, {"GET", "?limit=1&filter[stage]=won", ""}, {"GET", "?sort=-margin&filter[margin][gte]=7", ""}, {"GET", "?filter[name][contains]=a", ""},
				{"GET", "?limit=0", ""}, {"GET", "/" + sam, ""}, {"GET", "/" + sam + "/shares", ""},
				{"GET", "/unknown", ""}, {"POST", "", `{"name": 7, "nickname": "x"}`}, {"POST", "/" + sam + "/shares", `{"role": "nobody", "access": "read"}`},
				{"DELETE", "/" + sam + "/shares", `{"role": "customer"}`}, {"DELETE", "/unknown", ""},
			} {
				got, want := staff.Do(call[0], contacts+call[1], call[2]), key.Do(call[0], contact+call[1], call[2])
				body := string(got.Body)
				if call[0] == "GET" && strings.HasPrefix(call[1], "/"+sam) && !strings.HasSuffix(call[1], "/shares") && got.Status == 200 {
					var a, b struct{ Data any }
					if json.Unmarshal(got.Body, &a) != nil || json.Unmarshal(want.Body, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
						t.Errorf("%s: %v: %s and %s", email, call, got.Body, want.Body)
					}
					continue
				}
				if got.Status != want.Status || body != string(want.Body) {
					t.Errorf("%s: %v: %d %s, by the API %d %s", email, call, got.Status, body, want.Status, want.Body)
				}
			}
		}
	})
}

// TestTwoPeopleEditOneRecord: who comes second is told what the first one stored,
// and nothing is lost.
func TestTwoPeopleEditOneRecord(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam, uma := w.Staff("sam@acme.example"), w.Staff("uma@acme.example")
		id := sam.Post(contacts, `{"name": "Ada"}`).Want(201, "").ID()
		one := contacts + "/" + id
		var seen struct{ Meta data.DataRecordMeta }
		if err := json.Unmarshal(uma.Get(one).Want(200, "").Body, &seen); err != nil || !seen.Meta.May.Update || seen.Meta.May.Delete {
			t.Fatalf("Uma may %+v %v", seen.Meta, err)
		}
		version := fmt.Sprintf("?version=%d", seen.Meta.Version)
		sam.Patch(one+version, `{"name": "Ada L."}`).Want(200, "")
		refused := uma.Patch(one+version, `{"stage": "won"}`).Want(409, "CONFLICT")
		var conflict struct {
			Error struct {
				Details struct {
					Version int64
					Record  map[string]any
				}
			}
		}
		if err := json.Unmarshal(refused.Body, &conflict); err != nil || conflict.Error.Details.Record["name"] != "Ada L." || conflict.Error.Details.Version <= seen.Meta.Version {
			t.Fatalf("%v %s", err, refused.Body)
		}
		after := uma.Patch(fmt.Sprintf("%s?version=%d", one, conflict.Error.Details.Version), `{"stage": "won"}`).Want(200, "").Record()
		if after["name"] != "Ada L." || after["stage"] != "won" {
			t.Errorf("%v", after)
		}
		for _, bad := range []string{"", "?version=", "?version=0", "?version=x"} {
			sam.Patch(one+bad, `{"name": "x"}`).Want(400, "VALIDATION")
		}
		profile := "/admin/v1/data/user/" + w.UserID("acme", "sam@acme.example")
		olivia := w.Staff("olivia@acme.example")
		if err := json.Unmarshal(olivia.Get(profile).Want(200, "").Body, &seen); err != nil {
			t.Fatal(err)
		}
		version = fmt.Sprintf("?version=%d", seen.Meta.Version)
		olivia.Patch(profile+version, `{"name": "Samuel"}`).Want(200, "")
		olivia.Patch(profile+version, `{"locale": "de"}`).Want(409, "CONFLICT")
	})
}

// TestOfManyEditsOfOneVersionOneWins changes one version of a record many times at
// once.
func TestOfManyEditsOfOneVersionOneWins(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam := w.Staff("sam@acme.example")
		id := sam.Post(contacts, `{"name": "Ada"}`).Want(201, "").ID()
		var seen struct{ Meta data.DataRecordMeta }
		if err := json.Unmarshal(sam.Get(contacts+"/"+id).Body, &seen); err != nil {
			t.Fatal(err)
		}
		const many = 12
		codes := make([]string, many)
		var wait sync.WaitGroup
		for i := range many {
			wait.Go(func() {
				a := sam.Patch(fmt.Sprintf("%s/%s?version=%d", contacts, id, seen.Meta.Version), fmt.Sprintf(`{"name": "%d"}`, i))
				codes[i] = fmt.Sprint(a.Status, " ", a.Code())
			})
		}
		wait.Wait()
		slices.Sort(codes)
		if codes[0] != "200 " || codes[1] != "409 CONFLICT" || codes[many-1] != "409 CONFLICT" {
			t.Errorf("%v", codes)
		}
	})
}

func ask(t *testing.T, a *gatetest.Actor, params ...string) (*gatetest.Answer, data.Explained) {
	t.Helper()
	q := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	var e data.Explained
	got := a.Get("/admin/v1/why?" + q.Encode())
	if got.Status == 200 {
		got.Data(&e)
	}
	return got, e
}

func (asked asked) way(cause string) data.ExplainedWay {
	for _, w := range asked.Ways {
		if string(w.Cause) == cause {
			return w
		}
	}
	return data.ExplainedWay{}
}

type asked data.Explained

// TestWhyAPeerSeesNothing asks why a peer cannot see a record, shares it, and asks
// again.
func TestWhyAPeerSeesNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		id := w.Staff("sam@acme.example").Post(contacts, `{"name": "Ada", "margin": 7}`).Want(201, "").ID()
		rosa := w.UserID("acme", "rosa@acme.example")
		olivia, mia, sid := w.Staff("olivia@acme.example"), w.Staff("mia@acme.example"), w.Staff("sid@acme.example")
		about := []string{"user", rosa, "entity", "contact", "id", id}
		_, e := ask(t, olivia, about...)
		if e.Verbs[0].Allowed || e.Verbs[0].Status != 404 || e.Verbs[0].Reached || len(e.Verbs[0].Sets) != 1 {
			t.Errorf("Rosa's verbs: %+v", e.Verbs)
		}
		for cause, want := range map[string]string{
			"owner": "Sam Rep owns it", "hierarchy": "the user has the role of the owner, rep; peers see nothing of one another",
			"rule_by_owner_role": "1 rule by the owner's role on contact; nearest: owned by rep → support, edit", "default": "the default of contact is private",
		} {
			if at := asked(e).way(cause); at.Closed == nil || *at.Closed != want || at.Near != (cause == "rule_by_owner_role") {
				t.Errorf("%s: %+v, want %s", cause, at, want)
			}
		}
		if len(e.Openings) != 2 || e.Openings[0].Kind != "share" || !e.Openings[0].May || e.Openings[1].Kind != "role" || *e.Openings[1].Role != "manager" ||
			e.Openings[1].Reach.Records.Count != 1 {
			t.Errorf("openings: %+v", e.Openings)
		}
		_, eva := ask(t, olivia, "user", w.UserID("acme", "eva@customer.example"), "entity", "contact", "id", id, "verb", "update")
		if eva.Verbs[0].Code != nil || eva.Verbs[1].Allowed || len(eva.Openings) < 2 || eva.Openings[0].Kind != "permission_set" || *eva.Openings[0].Set != "work" {
			t.Errorf("Eva: %+v %+v", eva.Verbs, eva.Openings)
		}
		olivia.Post(contacts+"/"+id+"/shares", `{"user": "rosa@acme.example", "access": "read"}`).Want(201, "")
		_, e = ask(t, olivia, about...)
		if !e.Verbs[0].Allowed || asked(e).way("share_with_user").Reasons[0].Text != "shared with the user (read)" || len(e.Openings) != 0 {
			t.Errorf("after the share: %+v", e)
		}

		got, e := ask(t, mia, about...) // sees it, as a manager, and may not read margin
		if got.Status != 200 || slices.ContainsFunc(e.Fields, func(f data.ExplainedField) bool { return f.Name == "margin" }) {
			t.Errorf("Mia is told %s", got.Body)
		}
		_, eva = ask(t, mia, "user", w.UserID("acme", "eva@customer.example"), "entity", "contact", "id", id)
		if text := asked(eva).way("rule_by_value").Reasons[0].Text; strings.Contains(text, "7") || strings.Contains(text, "margin") {
			t.Errorf("Mia is told %s", text)
		}
		if got, _ := ask(t, mia, append(about, "field", "margin")...); got.Status != 400 {
			t.Errorf("Mia asks for margin: %s", got.Body)
		}
		unseen, _ := ask(t, sid, about...)
		unknown, _ := ask(t, sid, "user", rosa, "entity", "contact", "id", "nothing")
		if unseen.Status != 404 || string(unseen.Body) != string(unknown.Body) {
			t.Errorf("Sid is told %s and %s", unseen.Body, unknown.Body)
		}
		if got, _ := ask(t, w.Staff("sam@acme.example"), about...); got.Status != 403 {
			t.Errorf("Sam may ask: %s", got.Body)
		}
		for _, bad := range [][]string{{"user", rosa}, append(slices.Clone(about), "verb", "create"), append(slices.Clone(about), "field", "nothing")} {
			if got, _ := ask(t, olivia, bad...); got.Status != 400 {
				t.Errorf("%v: %s", bad, got.Body)
			}
		}
	})
}

// TestWhoSeesARecord lists the users who see a record, with what opens it.
func TestWhoSeesARecord(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		id := w.Staff("sam@acme.example").Post(contacts, `{"name": "Ada", "margin": 7}`).Want(201, "").ID()
		seers := func(as *gatetest.Actor, more string) (list []string) {
			t.Helper()
			var page []data.Seer
			as.Get(contacts+"/"+id+"/viewers"+more).Want(200, "").Data(&page)
			for _, s := range page {
				list = append(list, strings.Fields(s.Name)[0]+" "+strings.Join(s.Verbs, ",")+": "+s.Text)
			}
			slices.Sort(list)
			return list
		}
		want := []string{
			"Mia read: its owner has role rep, of which manager is an ancestor", "Olivia read,update,delete: the user owns the tenant",
			"Sam read,update,delete: the user owns it", "Uma read,update: a rule shares records owned by role rep with role support (edit)",
		}
		if got := seers(w.Staff("olivia@acme.example"), ""); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if got := seers(w.Staff("olivia@acme.example"), "?type=external"); len(got) != 1 || !strings.HasPrefix(got[0], "Eva read: a rule shares records where margin = 7") {
			t.Errorf("%q", got)
		}
		if got := seers(w.Staff("mia@acme.example"), "?type=external"); len(got) != 1 || strings.Contains(got[0], "margin") {
			t.Errorf("%q", got)
		}
		w.Staff("sid@acme.example").Get(contacts+"/"+id+"/viewers").Want(404, "NOT_FOUND")
		w.Staff("sam@acme.example").Get(contacts+"/"+id+"/viewers").Want(403, "FORBIDDEN")
	})
}

// TestReachOfARule counts what rules would open.
func TestReachOfARule(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam := w.Staff("sam@acme.example")
		for i := range 5 {
			sam.Post(contacts, fmt.Sprintf(`{"name": "%d", "stage": %q}`, i, []string{"new", "won"}[i%2])).Want(201, "")
		}
		w.Apply("tenant: acme\nuser_fields: [{name: known, type: multireference, entity: contact, managed: true}]\n")
		for _, c := range []struct{ as, query, want string }{
			{"olivia", "where[id]=%7B%7Buser.known%7D%7D&share_with_role=customer", "5 1"}, // each with whoever knows it
			{"olivia", "where[id]=%7B%7Buser.known%7D%7D&where[stage]=won&share_with_role=customer", "2 1"},
			{"olivia", "owned_by_role=rep&share_with_role=support", "5 1"}, // Uma; nobody has the role ceo
			{"olivia", "where[stage]=won&share_with_role=customer", "2 1"},
			{"olivia", "where[stage]=won&where[margin]=7&share_with_role=customer", "0 1"},
			{"sid", "owned_by_role=rep&share_with_role=rep", "0 3"}, // who sees none of the records: Sam, Rosa, Mia
		} {
			var r data.Reach
			w.Staff(c.as+"@acme.example").Get("/admin/v1/reach?entity=contact&"+c.query).Want(200, "").Data(&r)
			if got := fmt.Sprint(r.Records.Count, " ", r.Users.Count); got != c.want || r.Records.More || r.Users.More {
				t.Errorf("%s: %s: %s, want %s", c.as, c.query, got, c.want)
			}
		}
		olivia := w.Staff("olivia@acme.example")
		for _, bad := range []string{
			"owned_by_role=rep", "owned_by_role=nobody&share_with_role=rep", "share_with_role=rep", "owned_by_role=rep&where[stage]=won&share_with_role=rep",
			"where[nothing]=1&share_with_role=rep", "where[id]=019a0000-0000-7000-8000-000000000000&share_with_role=rep", "where[id]=%7B%7Buser.id%7D%7D&share_with_role=rep",
			"where[stage]=lost&share_with_role=rep", "owned_by_role=rep&share_with_role=rep&more=1",
		} {
			olivia.Get("/admin/v1/reach?entity=contact&"+bad).Want(400, "VALIDATION")
		}
		olivia.Get("/admin/v1/reach?entity=nothing&owned_by_role=rep&share_with_role=rep").Want(404, "NOT_FOUND")
		w.Staff("mia@acme.example").Get("/admin/v1/reach?entity=contact&owned_by_role=rep&share_with_role=rep").Want(403, "FORBIDDEN")
	})
}

// TestTheEntitiesOfAStaffUser lists what a user may use, and counts what they see.
func TestTheEntitiesOfAStaffUser(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam := w.Staff("sam@acme.example")
		for i := range 3 {
			sam.Post(contacts, fmt.Sprintf(`{"name": "%d", "stage": %q}`, i, []string{"new", "won"}[i%2])).Want(201, "")
		}
		for _, c := range []struct{ as, fields, all, won string }{
			{"sam", "name stage margin", "3", "1"}, {"mia", "name stage", "3", "1"}, {"sid", "name stage margin", "0", "0"}, {"nina", "", "403", "403"},
		} {
			as := w.Staff(c.as + "@acme.example")
			var list []data.DataEntity
			as.Get("/admin/v1/data").Want(200, "").Data(&list)
			var names []string
			for _, e := range list {
				for _, f := range e.Fields {
					names = append(names, f.Name)
				}
			}
			if got := strings.Join(names, " "); got != c.fields {
				t.Errorf("%s: fields %q, want %q", c.as, got, c.fields)
			}
			for query, want := range map[string]string{"": c.all, "&filter[stage]=won": c.won} {
				got := as.Get("/admin/v1/count?entity=contact" + query)
				n := fmt.Sprint(got.Status)
				if got.Status == 200 {
					var counted data.ReachCount
					got.Data(&counted)
					n = fmt.Sprint(counted.Count)
				}
				if n != want {
					t.Errorf("%s: count%s: %s, want %s", c.as, query, n, want)
				}
			}
		}
		w.Staff("mia@acme.example").Get("/admin/v1/count?entity=contact&filter[margin]=7").Want(400, "VALIDATION")
		sam.Get("/admin/v1/count?entity=nothing").Want(404, "NOT_FOUND")
	})
}

// TestLabels names records by id and by search.
func TestLabels(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(office)
		sam := w.Staff("sam@acme.example")
		id := sam.Post(contacts, `{"name": "Ada Lovelace"}`).Want(201, "").ID()
		sam.Post(contacts, `{"name": "Grace Hopper"}`).Want(201, "")
		for _, c := range []struct{ as, query, want string }{
			{"sam", "entity=contact&search=LOVE", "[Ada Lovelace]"}, {"sam", "entity=contact", "[Grace Hopper Ada Lovelace]"},
			{"sam", "entity=contact&ids=" + id + ",nothing", "[Ada Lovelace]"}, {"sid", "entity=contact&ids=" + id, "[]"}, {"sid", "entity=contact&search=ada", "[]"},
			{"olivia", "entity=user&search=uma", "[Uma Support]"},
		} {
			var list []data.DataLabel
			w.Staff(c.as+"@acme.example").Get("/admin/v1/labels?"+c.query).Want(200, "").Data(&list)
			names := []string{}
			for _, l := range list {
				names = append(names, l.Label)
			}
			if fmt.Sprint(names) != c.want {
				t.Errorf("%s: %s: %v, want %s", c.as, c.query, names, c.want)
			}
		}
		sam.Get("/admin/v1/labels?entity=user").Want(403, "FORBIDDEN")
		sam.Get("/admin/v1/labels?entity=contact&search=a&ids=b").Want(400, "VALIDATION")
		sam.Get("/admin/v1/labels?entity=contact&ids="+strings.Repeat("a,", 100)).Want(400, "VALIDATION")
	})
}
