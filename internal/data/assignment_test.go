package data_test

import (
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// TestOnlyFieldsAreAssigned: any member of a body that is not the exact name of a field
// is refused, by its name.
func TestOnlyFieldsAreAssigned(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada","email":"ada@x.example","score":1}`).Want(201, "").ID()
		another := w.UserID("acme", "olivia@acme.example")
		before := string(sam.Get(one).Want(200, "").Body)
		for _, member := range []string{
			`"id":"01890000-0000-7000-8000-000000000000"`, `"id":null`, `"id":1`, `"created_at":"2020-01-01T00:00:00.000000Z"`, `"created_at":null`,
			`"updated_at":"2020-01-01T00:00:00Z"`, `"updated_at":1`,
			`"created_by":"` + another + `"`, `"updated_by":"` + another + `"`, `"version":99`, `"tenant_id":"other"`, `"tenant":"other"`, `"entity":"account"`,
			`"owner":"` + another + `"`, `"owner_role":"ceo"`, `"ownerId":"` + another + `"`, `"OWNER_ID":"` + another + `"`, `"data":{"score":9}`, `"fields":{}`,
			`"shares":[]`, `"deleted":true`, `"_id":"x"`, `"secret_score":9`,
			`"__proto__":{"score":9}`, `"constructor":{"prototype":{"score":9}}`, `"prototype":{}`, `"toString":1`, `"":1`, `" ":1`,
			`"Email":"e@x.example"`, `"EMAIL":"e@x.example"`, `"eMail":"e@x.example"`, `"first_name ":"Eve"`, `" first_name":"Eve"`, `"first_name\t":"Eve"`,
			`"first-name":"Eve"`, `"firstName":"Eve"`, `"FirstName":"Eve"`, `"First_name":"Eve"`,
			`"extra.note":"x"`, `"extra[note]":"x"`, `"contact.score":9`, `"data.score":9`, `"score[]":9`, `"score.":9`, `"$set":{"score":9}`, `"score$":9`,
			`"ſcore":9`, `"\u017fcore":9`, `"scoRe":9`, `"ｓcore":9`, `"score\u200b":9`, `"\ufeffscore":9`, `"score\u0301":9`, `"\u0435mail":"x"`,
		} {
			name := nameOf(t, member)
			failing(t, sam.Post(contact, `{"first_name":"Eve",`+member+`}`), name)
			failing(t, sam.Patch(one, `{`+member+`}`), name)
			failing(t, sam.Patch(one, `{"score":5,`+member+`}`), name) // nothing of a body is done when one member fails
			// This also holds for a user who may do everything.
			if name != "secret_score" {
				failing(t, olivia.Patch(one, `{`+member+`}`), name)
			}
		}
		// The error names all of them.
		failing(t, sam.Patch(one, `{"id":"x","version":1,"score":"many","stage":"none","Email":"x","tags":["a","a"],"account":"x","first_name":null}`),
			"id", "version", "score", "stage", "Email", "tags", "account", "first_name")
		failing(t, sam.Post(contact, `{"created_at":1,"score":[]}`), "created_at", "score", "first_name")
		if after := string(sam.Get(one).Want(200, "").Body); after != before {
			t.Errorf("the record was %s and is %s", before, after)
		}
		if n := len(olivia.Get(contact).Records()); n != 1 {
			t.Errorf("%d records", n)
		}
	})
}

// nameOf returns the name of a member as JSON decodes it.
func nameOf(t *testing.T, member string) string {
	t.Helper()
	name := member[1:strings.Index(member, `":`)]
	for escape, char := range map[string]string{
		`\t`: "\t", `\u017f`: "ſ", `\u200b`: "\u200b", `\ufeff`: "\ufeff", `\u0301`: "\u0301", `\u0435`: "\u0435",
	} {
		name = strings.ReplaceAll(name, escape, char)
	}
	return name
}

// TestPatchMayRepeatReadOnlyMembers: id, created_at and updated_at exactly as they were
// read, so that a whole record can be sent back; a create may not.
func TestPatchMayRepeatReadOnlyMembers(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		olivia := w.Key("olivia@acme.example")
		made := olivia.Post(contact, `{"first_name":"Ada","score":1}`).Want(201, "")
		one := contact + "/" + made.ID()
		whole := string(made.Body)
		whole = whole[len(`{"data":`) : len(whole)-len(`,"meta":{}}`)]
		olivia.Patch(one, whole).Want(200, "")
		failing(t, olivia.Post(contact, whole), "id", "created_at", "updated_at")
		r := olivia.Get(one).Record()
		at, _ := r["created_at"].(string)
		failing(t, olivia.Patch(one, `{"created_at":"`+strings.TrimSuffix(at, "Z")+`+00:00"}`), "created_at")
		failing(t, olivia.Patch(one, `{"id":"`+strings.ToUpper(made.ID())+`"}`), "id")
	})
}

// TestWhoMaySetOwners: the tenant owner, and users with all_entity_access.
func TestWhoMaySetOwners(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply("tenant: other\nhosts: [other.localhost]\nusers: [{email: o@other.example, name: O, owner: true}]\n")
		sam := w.Key("sam@acme.example")
		self, nina := w.UserID("acme", "sam@acme.example"), w.UserID("acme", "nina@acme.example")
		stranger := w.UserID("other", "o@other.example")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada","owner_id":"`+self+`"}`).Want(201, "").ID()
		sam.Patch(one, `{"owner_id":"`+self+`"}`).Want(200, "")
		for _, a := range []*gatetest.Answer{
			sam.Post(contact, `{"first_name":"Ada","owner_id":"`+nina+`"}`), sam.Patch(one, `{"owner_id":"`+nina+`"}`),
			sam.Patch(one, `{"owner_id":"`+stranger+`"}`), sam.Patch(one, `{"owner_id":"nobody"}`),
		} {
			if a.Want(403, "FORBIDDEN"); len(a.Fields()) != 1 || a.Fields()[0] != "owner_id" {
				t.Errorf("%s: %s", a.Call, a.Body)
			}
		}
		for _, email := range []string{"olivia@acme.example", "alma@acme.example"} {
			may := w.Key(email)
			for _, bad := range []string{`"` + stranger + `"`, `"nobody"`, `""`, `null`, `1`, `true`, `{}`, `["` + nina + `"]`, `"` + strings.ToUpper(nina) + `"`} {
				failing(t, may.Post(contact, `{"first_name":"Ada","owner_id":`+bad+`}`), "owner_id")
				failing(t, may.Patch(one, `{"owner_id":`+bad+`}`), "owner_id")
			}
			if got := may.Post(contact, `{"first_name":"Ada","owner_id":"`+nina+`"}`).Want(201, "").Record()["owner_id"]; got != nina {
				t.Errorf("%s made it %v's", email, got)
			}
			if got := may.Patch(one, `{"owner_id":"`+nina+`"}`).Want(200, "").Record()["owner_id"]; got != nina {
				t.Errorf("%s gave it to %v", email, got)
			}
			sam.Get(one).Want(404, "NOT_FOUND") // it is not his any more
			may.Patch(one, `{"owner_id":"`+self+`"}`).Want(200, "")
			sam.Get(one).Want(200, "")
		}
	})
}

// TestFieldPermissions: setting a field that may be read but not edited is 403; one that
// may not be read is unknown everywhere.
func TestFieldPermissions(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		olivia.Patch(one, `{"note":"hers","secret_score":7}`).Want(200, "")
		for _, a := range []*gatetest.Answer{
			sam.Patch(one, `{"note":"mine"}`), sam.Patch(one, `{"note":null}`), sam.Patch(one, `{"note":"hers"}`), sam.Patch(one, `{"note":"mine","score":"bad"}`),
			sam.Post(contact, `{"first_name":"Eve","note":"mine"}`),
		} {
			if a.Want(403, "FORBIDDEN"); strings.Join(a.Fields(), " ") != "note" {
				t.Errorf("%s: %s", a.Call, a.Body)
			}
		}
		for _, value := range []string{"8", "null", `"x"`, "7"} {
			failing(t, sam.Patch(one, `{"secret_score":`+value+`}`), "secret_score")
		}
		hidden := sam.Patch(one, `{"secret_score":1}`)
		unknown := sam.Patch(one, `{"public_score":1}`)
		if got := strings.ReplaceAll(string(hidden.Body), "secret", "public"); got != string(unknown.Body) {
			t.Errorf("a hidden field differs from an unknown one: %s and %s", hidden.Body, unknown.Body)
		}
		r := sam.Get(one).Record()
		if _, shown := r["secret_score"]; shown || r["note"] != "hers" {
			t.Errorf("sam sees %v", r)
		}
		if r := olivia.Get(one).Record(); r["secret_score"] != 7.0 || r["note"] != "hers" {
			t.Errorf("olivia sees %v", r)
		}
	})
}
