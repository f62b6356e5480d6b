package data_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/gatetest"
)

const sharers = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true}
entities: [{name: contact, fields: [{name: name, type: text}, {name: score, type: number, indexed: true}]}]
roles: [{name: ceo}, {name: sales, parent: ceo}, {name: staff}, {name: globex, parent: staff}, {name: initech, parent: staff}]
permission_sets:
  - {name: work, entities: {contact: {create: true, read: true, update: true, delete: true}}}
  - {name: see, entities: {user: {read: true}}}
  - {name: ids, entities: {user: {read: true, fields: {email: {read: false}}}}}
users:
  - {email: olivia@acme.example, name: O, owner: true}
  - {email: sam@acme.example, name: S, role: sales, permission_sets: [work, see]}
  - {email: ida@acme.example, name: I, permission_sets: [work, ids]}
  - {email: ned@acme.example, name: N, permission_sets: [work]}
  - {email: cleo@acme.example, name: C, role: ceo, permission_sets: [work]}
  - {email: nora@acme.example, name: N}
  - {email: eva@globex.example, name: E, type: external, role: globex, permission_sets: [work, see]}
  - {email: ivo@initech.example, name: I, type: external, role: initech, permission_sets: [work]}
`

func sharesOf(id string) string { return contact + "/" + id + "/shares" }

// TestSharesOverHTTP (contract A16).
func TestSharesOverHTTP(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharers)
		sam, ned, cleo := w.Key("sam@acme.example"), w.Key("ned@acme.example"), w.Key("cleo@acme.example")
		nedID := w.UserID("acme", "ned@acme.example")
		id := sam.Post(contact, `{"name":"Ada","score":1}`).Want(201, "").ID()
		one, path := contact+"/"+id, sharesOf(id)
		ned.Get(one).Want(404, "NOT_FOUND")
		ned.Get(path).Want(404, "NOT_FOUND")

		made := sam.Post(path, `{"user":"NED@acme.example","access":"read"}`).Want(201, "")
		if got := made.Record(); got["user"] != nedID || got["role"] != nil || got["access"] != "read" || got["created_at"] == "" || len(got) != 4 {
			t.Errorf("the share is %s", made.Body)
		}
		ned.Get(one).Want(200, "")
		if n := ned.Get(contact+"?filter[score]=1").Want(200, "").Meta().Count; n != 1 {
			t.Errorf("ned filters %d", n)
		}
		ned.Patch(one, `{"score":1}`).Want(403, "FORBIDDEN")
		if again := sam.Post(path, `{"user":"`+nedID+`","role":null,"access":"read"}`).Want(200, ""); string(again.Body) != string(made.Body) {
			t.Errorf("the same share again is %s", again.Body)
		}
		sam.Post(path, `{"user":"`+nedID+`","access":"edit"}`).Want(200, "")
		ned.Patch(one, `{"score":2}`).Want(200, "")

		// Neither read nor edit is a right to share.
		for _, a := range []*gatetest.Answer{
			ned.Post(path, `{"user":"`+nedID+`","access":"edit"}`), ned.Post(path, `{"role":"ceo","access":"read"}`), ned.Do("DELETE", path, `{"user":"`+nedID+`"}`),
		} {
			a.Want(403, "FORBIDDEN")
		}
		cleo.Post(path, `{"role":"staff","access":"read"}`).Want(201, "") // an ancestor of the owner's role
		list := sam.Get(path).Want(200, "").Records()
		if len(list) != 2 || list[0]["role"] != "staff" || list[0]["user"] != nil || list[1]["user"] != nedID || list[1]["access"] != "edit" {
			t.Errorf("the shares are %v", list)
		}
		// Who may not see users sees the shares with roles and with themselves.
		if list := ned.Get(path).Want(200, "").Records(); len(list) != 2 {
			t.Errorf("ned sees %v", list)
		}
		if list := cleo.Get(path).Want(200, "").Records(); len(list) != 1 || list[0]["role"] != "staff" {
			t.Errorf("cleo sees %v", list)
		}
		cleo.Do("DELETE", path, `{"user":"`+nedID+`"}`).Want(404, "NOT_FOUND")
		gone := sam.Do("DELETE", path, `{"user":"ned@acme.example"}`).Want(200, "").Record()
		if gone["user"] != nedID || gone["role"] != nil || gone["deleted"] != true || len(gone) != 3 {
			t.Errorf("removed: %v", gone)
		}
		ned.Get(one).Want(404, "NOT_FOUND")
		if n := ned.Get(contact+"?filter[score]=2").Want(200, "").Meta().Count; n != 0 {
			t.Errorf("ned filters %d", n)
		}
		sam.Do("DELETE", path, `{"user":"ned@acme.example"}`).Want(404, "NOT_FOUND")
	})
}

// TestSharesAreStrict: what is not exactly right is refused, and names why.
func TestSharesAreStrict(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharers)
		sam, nora := w.Key("sam@acme.example"), w.Key("nora@acme.example")
		path := sharesOf(sam.Post(contact, `{"name":"Ada"}`).Want(201, "").ID())
		for body, fields := range map[string]string{
			`{}`:                               "access role user",
			`{"access":"read"}`:                "role user",
			`{"role":"ceo"}`:                   "access",
			`{"role":"ceo","access":"delete"}`: "access",
			`{"role":"ceo","access":null}`:     "access",
			`{"role":"ceo","user":"x","access":"read"}`:      "role user",
			`{"role":"","user":"","access":"read"}`:          "role user",
			`{"Role":"ceo","access":"read"}`:                 "Role role user",
			`{"role":"ceo","access":"read","owner":true}`:    "owner",
			`{"role":5,"access":"read"}`:                     "role",
			`{"role":["ceo"],"access":"read"}`:               "role",
			`{"role":"nope","access":"read"}`:                "role",
			`{"user":"nobody","access":"read"}`:              "user",
			`{"user":"nobody@acme.example","access":"read"}`: "user",
		} {
			a := sam.Post(path, body).Want(400, "VALIDATION")
			if got := strings.Join(a.Fields(), " "); got != fields {
				t.Errorf("%s: fields %q, want %q: %s", body, got, fields, a.Body)
			}
		}
		failing(t, sam.Do("DELETE", path, `{"role":"ceo","access":"read"}`), "access")
		sam.Do("DELETE", path, "").Want(415, "UNSUPPORTED_MEDIA_TYPE")
		sam.Do("DELETE", path, `{"role":"nope"}`).Want(404, "NOT_FOUND")
		sam.Post(path, `{"role":"ceo","role":"ceo","access":"read"}`).Want(400, "VALIDATION")
		sam.Get(path+"?limit=1").Want(400, "VALIDATION")
		sam.Patch(path, `{}`).Want(405, "METHOD_NOT_ALLOWED")
		nora.Get(path).Want(403, "FORBIDDEN")
		nora.Post(path, `{`).Want(403, "FORBIDDEN") // before the body is read
		if list := sam.Get(path).Want(200, "").Records(); len(list) != 0 {
			t.Errorf("shares: %v", list)
		}
	})
}

// TestWhomAViewerMayName: one who may not be seen answers as one who does not
// exist (contract A17).
func TestWhomAViewerMayName(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharers)
		nora := w.UserID("acme", "nora@acme.example")
		for email, may := range map[string]string{
			"sam@acme.example":    "id address role other",
			"ida@acme.example":    "id role other",
			"ned@acme.example":    "role other",
			"eva@globex.example":  "role",
			"ivo@initech.example": "",
		} {
			who := w.Key(email)
			path := sharesOf(who.Post(contact, `{"name":"x"}`).Want(201, "").ID())
			// Themselves, in both forms.
			who.Post(path, `{"user":"`+email+`","access":"read"}`).Want(201, "")
			who.Post(path, `{"user":"`+w.UserID("acme", email)+`","access":"read"}`).Want(200, "")
			if list := who.Get(path).Want(200, "").Records(); len(list) != 1 {
				t.Errorf("%s sees %v", email, list)
			}
			for kind, names := range map[string][2]string{
				"id":      {`"user":"` + nora + `"`, `"user":"01890000-0000-7000-8000-000000000000"`},
				"address": {`"user":"nora@acme.example"`, `"user":"nobody@acme.example"`},
				"role":    {`"role":"globex"`, `"role":"nowhere"`},
				"other":   {`"role":"ceo"`, `"role":"nowhere"`},
			} {
				real := who.Post(path, `{`+names[0]+`,"access":"read"}`)
				absent := who.Post(path, `{`+names[1]+`,"access":"read"}`).Want(400, "VALIDATION")
				allowed := strings.Contains(may, kind)
				if allowed != (real.Status == 201 || kind == "address" && real.Status == 200) {
					t.Errorf("%s names the %s: %d %s", email, kind, real.Status, real.Body)
				}
				if !allowed && string(real.Body) != string(absent.Body) {
					t.Errorf("%s, %s: %s and %s", email, kind, real.Body, absent.Body)
				}
				real, absent = who.Do("DELETE", path, `{`+names[0]+`}`), who.Do("DELETE", path, `{`+names[1]+`}`).Want(404, "NOT_FOUND")
				if !allowed && string(real.Body) != string(absent.Body) {
					t.Errorf("%s removes, %s: %s and %s", email, kind, real.Body, absent.Body)
				}
			}
		}
	})
}

// TestWhoMayNotShare tries what would widen one's rights.
func TestWhoMayNotShare(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharers)
		w.Apply(strings.NewReplacer("acme", "other").Replace(sharers))
		sam, eva, ivo := w.Key("sam@acme.example"), w.Key("eva@globex.example"), w.Key("ivo@initech.example")
		olivia, stranger := w.Key("olivia@acme.example"), w.KeyOf("other", "other.localhost", "olivia@other.example")
		sams := sam.Post(contact, `{"name":"Sam's"}`).Want(201, "").ID()
		evas := eva.Post(contact, `{"name":"Eva's"}`).Want(201, "").ID()
		foreign := stranger.Post(contact, `{"name":"theirs"}`).Want(201, "").ID()
		self := `{"user":"eva@globex.example","access":"edit"}`
		eva.Post(sharesOf(sams), self).Want(404, "NOT_FOUND") // not theirs, not seen
		w.Share("contact", sams, "role:globex", access.Edit)
		for _, body := range []string{self, `{"role":"globex","access":"edit"}`, `{"role":"staff","access":"edit"}`} {
			eva.Post(sharesOf(sams), body).Want(403, "FORBIDDEN") // seen and editable, not theirs
		}
		eva.Do("DELETE", sharesOf(sams), `{"role":"globex"}`).Want(403, "FORBIDDEN")
		ivo.Post(sharesOf(evas), `{"user":"ivo@initech.example","access":"edit"}`).Want(404, "NOT_FOUND")
		eva.Post(sharesOf(evas), `{"role":"initech","access":"edit"}`).Want(400, "VALIDATION") // another segment's
		eva.Post(sharesOf(evas), `{"role":"staff","access":"edit"}`).Want(201, "")
		for _, who := range []*gatetest.Actor{sam, eva, olivia} {
			who.Post(sharesOf(foreign), self).Want(404, "NOT_FOUND")
			who.Get(sharesOf(foreign)).Want(404, "NOT_FOUND")
			for _, id := range []string{w.UserID("acme", "eva@globex.example"), w.UserID("acme", "sam@acme.example")} {
				who.Post("/public/v1/data/user/"+id+"/shares", self).Want(404, "NOT_FOUND")
				who.Get("/public/v1/data/user/"+id+"/shares").Want(404, "NOT_FOUND")
				who.Do("DELETE", "/public/v1/data/user/"+id+"/shares", self).Want(404, "NOT_FOUND")
			}
		}
		// A user of another tenant is nobody here.
		other := w.UserID("other", "olivia@other.example")
		for _, name := range []string{other, "olivia@other.example"} {
			failing(t, olivia.Post(sharesOf(sams), `{"user":"`+name+`","access":"read"}`), "user")
		}
		// Who gave a record away shares it no more.
		olivia.Patch(contact+"/"+evas, `{"owner_id":"`+w.UserID("acme", "sam@acme.example")+`"}`).Want(200, "")
		eva.Post(sharesOf(evas), self).Want(404, "NOT_FOUND")
	})
}

// TestSharesAtOnce: of shares of one record that are made at once, each is made
// once, and none is more than the most that there may be.
func TestSharesAtOnce(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharers)
		sam, ned := w.Key("sam@acme.example"), w.Key("ned@acme.example")
		for range 5 {
			id := sam.Post(contact, `{"name":"Ada","score":5}`).Want(201, "").ID()
			statuses := make([]int, 8)
			var wait sync.WaitGroup
			for i := range statuses {
				wait.Go(func() {
					to := []string{"ned", "nora"}[i%2]
					if a, err := sam.Try("POST", sharesOf(id), `{"user":"`+to+`@acme.example","access":"read"}`); err == nil {
						statuses[i] = a.Status
					}
				})
			}
			wait.Wait()
			count := map[int]int{}
			for _, s := range statuses {
				count[s]++
			}
			if count[201] != 2 || count[200] != 6 {
				t.Errorf("statuses %v", statuses)
			}
			ned.Get(contact+"/"+id).Want(200, "")
			if list := sam.Get(sharesOf(id)).Want(200, "").Records(); len(list) != 2 {
				t.Errorf("shares %v", list)
			}
		}
		if n := ned.Get(contact+"?filter[score]="+strconv.Itoa(5)).Want(200, "").Meta().Count; n != 5 {
			t.Errorf("ned filters %d", n)
		}
	})
}
