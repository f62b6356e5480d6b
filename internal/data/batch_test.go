package data_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// itemOf is one item of the answer of a batch.
type itemOf struct {
	Index  int             `json:"index"`
	Op     string          `json:"op"`
	Status int             `json:"status"`
	Data   json.RawMessage `json:"data"`
	Error  json.RawMessage `json:"error"`
}

func (it itemOf) id() string {
	var rec struct{ ID string }
	_ = json.Unmarshal(it.Data, &rec)
	return rec.ID
}

// itemsOf returns the items of the answer of a batch.
func itemsOf(t *testing.T, a *gatetest.Answer) (list []itemOf) {
	t.Helper()
	var body struct{ Data []itemOf }
	if err := json.Unmarshal(a.Want(200, "").Body, &body); err != nil {
		t.Fatal(err)
	}
	for i, it := range body.Data {
		if it.Index != i || (it.Data == nil) == (it.Error == nil) {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	return body.Data
}

func TestABatchDoesItsItemsInOrder(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		old := sam.Post(contact, `{"first_name":"Old","email":"old@x"}`).Want(201, "").ID()
		gone := sam.Post(contact, `{"first_name":"Gone","email":"gone@x"}`).Want(201, "").ID()
		a := sam.Post(contact+"/batch", `{"items":[
			{"op":"create","fields":{"first_name":"Ada","email":"ada@x"}},
			{"op":"update","id":"`+old+`","fields":{"score":3}},
			{"op":"delete","id":"`+gone+`"},
			{"op":"upsert","by":"email","fields":{"first_name":"Bo","email":"bo@x"}},
			{"op":"upsert","by":"email","fields":{"email":"bo@x","score":7}},
			{"op":"upsert","by":"email","fields":{"email":"ada@x","score":8}},
			{"op":"upsert","by":"email","fields":{"first_name":"New","email":"gone@x"}}]}`)
		list := itemsOf(t, a)
		for i, status := range []int{201, 200, 200, 201, 200, 200, 201} {
			if list[i].Status != status {
				t.Errorf("item %d: %d", i, list[i].Status)
			}
		}
		if list[3].id() != list[4].id() || list[0].id() != list[5].id() || list[6].id() == gone || list[1].id() != old {
			t.Errorf("other records: %s", a.Body)
		}
		if string(list[2].Data) != `{"id":"`+gone+`","deleted":true}` {
			t.Errorf("deleted: %s", list[2].Data)
		}
		if !strings.Contains(string(a.Body), `"meta":{"succeeded":7,"failed":0}`) {
			t.Errorf("meta: %s", a.Body)
		}
		// The last item of each record answers it as it is read later, times included.
		for _, i := range []int{1, 4, 5, 6} {
			if read := sam.Get(contact+"/"+list[i].id()).Want(200, ""); !strings.Contains(string(read.Body), string(list[i].Data)) {
				t.Errorf("item %d: answered %s, read %s", i, list[i].Data, read.Body)
			}
		}
		sam.Get(contact+"/"+gone).Want(404, "NOT_FOUND")
	})
}

func TestABatchIsAllOrNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		kept := sam.Post(contact, `{"first_name":"Kept","email":"kept@x"}`).Want(201, "")
		const items = `[{"op":"create","fields":{"first_name":"Ada","email":"ada@x"}},
			{"op":"update","id":"none","fields":{}},
			{"op":"delete","id":"%s"},
			{"op":"create","fields":{"email":"ada@x"}},
			{"op":"create","fields":{"first_name":"Eve","email":"ada@x"}}]`
		body := fmt.Sprintf(items, kept.ID())
		a := sam.Post(contact+"/batch", `{"items":`+body+`}`).Want(404, "NOT_FOUND")
		var e struct {
			Error struct {
				Message string
				Details struct {
					Items []struct {
						Index int
						Error struct{ Code string }
					}
				}
			}
		}
		if err := json.Unmarshal(a.Body, &e); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(e.Error.Details.Items); got != "[{1 {NOT_FOUND}} {3 {VALIDATION}} {4 {CONFLICT}}]" || !strings.HasPrefix(e.Error.Message, "3 of 5 items failed; nothing was done. Item 1: ") {
			t.Errorf("%s: %s", got, a.Body)
		}
		if list := sam.Get(contact).Want(200, "").Records(); len(list) != 1 || list[0]["id"] != kept.ID() {
			t.Errorf("left: %v", list)
		}
		// Without atomic the others take effect.
		list := itemsOf(t, sam.Post(contact+"/batch", `{"atomic":false,"items":`+body+`}`))
		for i, status := range []int{201, 404, 200, 400, 409} {
			if list[i].Status != status {
				t.Errorf("item %d: %d", i, list[i].Status)
			}
		}
		if left := sam.Get(contact).Want(200, "").Records(); len(left) != 1 || left[0]["id"] != list[0].id() {
			t.Errorf("left: %v", left)
		}
	})
}

// TestMalformedBatches (contract R17): what is wrong with the body is the batch's error,
// what is wrong with an item the item's.
func TestMalformedBatches(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, nina, petra := w.Key("sam@acme.example"), w.Key("nina@acme.example"), w.Key("petra@acme.example")
		const path, one = contact + "/batch", `{"op":"create","fields":{"first_name":"x"}}`
		for body, fields := range map[string][]string{
			`{}`: {"items"}, `{"items":[]}`: {"items"}, `{"items":{}}`: {"items"}, `{"items":null}`: {"items"}, `{"items":"x"}`: {"items"},
			`{"items":[` + one + `],"atomic":1}`:                     {"atomic"},
			`{"items":[` + one + `],"atomic":null}`:                  {"atomic"},
			`{"items":[` + one + `],"Atomic":true,"x":1}`:            {"Atomic", "x"},
			`{"items":[` + strings.Repeat(one+",", 200) + one + `]}`: {"items"},
		} {
			failing(t, sam.Post(path, body), fields...)
		}
		for item, fields := range map[string]string{
			`7`: "", `null`: "", `[]`: "", `"create"`: "",
			`{}`: "op", `{"op":null}`: "op", `{"op":"Create","fields":{}}`: "op", `{"op":"share"}`: "op", `{"op":["create"]}`: "op",
			`{"op":"create"}`: "fields", `{"op":"create","fields":[]}`: "fields", `{"op":"create","fields":null}`: "fields",
			`{"op":"create","fields":{},"id":"x"}`: "id", `{"op":"create","fields":{},"by":"email"}`: "by",
			`{"op":"update","fields":{}}`: "id", `{"op":"update","id":7,"fields":{}}`: "id", `{"op":"update","id":"","fields":{}}`: "id", `{"op":"update","id":"x"}`: "fields",
			`{"op":"delete"}`: "id", `{"op":"delete","id":"x","fields":{}}`: "fields", `{"op":"delete","id":null}`: "id",
			`{"op":"upsert","fields":{}}`: "by", `{"op":"upsert","by":"email"}`: "fields", `{"op":"upsert","by":7,"fields":{}}`: "by", `{"op":"upsert","by":"email","fields":{}}`: "email",
			`{"op":"create","fields":{"first_name":7}}`: "first_name", `{"op":"create","fields":{"first_name":"x","op":"x"}}`: "op", `{"op":"create","fields":{},"Fields":{}}`: "Fields",
		} {
			list := itemsOf(t, sam.Post(path, `{"atomic":false,"items":[`+one+`,`+item+`]}`))
			var e struct {
				Code    string
				Details struct{ Fields map[string]string }
			}
			if err := json.Unmarshal(list[1].Error, &e); err != nil || list[1].Status != 400 || e.Code != "VALIDATION" || list[0].Status != 201 {
				t.Errorf("%s: %d %s", item, list[1].Status, list[1].Error)
				continue
			}
			if _, named := e.Details.Fields[fields]; !named && fields != "" {
				t.Errorf("%s: %s does not name %q", item, list[1].Error, fields)
			}
			a := sam.Post(path, `{"items":[`+one+`,`+item+`]}`).Want(400, "VALIDATION")
			if !strings.Contains(string(a.Body), `"items":[{"index":1,"error":`) {
				t.Errorf("%s: %s", item, a.Body)
			}
		}
		for _, body := range []string{` `, `[]`, `{"items":[` + one + `]`, `{"items":[` + one + `,]}`, `{"items":[{"op":"create","op":"create","fields":{}}]}`,
			`{"items":[{"op":"create","fields":{"first_name":"a","first_name":"b"}}]}`, `{"items":[],"items":[]}`, "\xef\xbb\xbf{}", `{"items":[{"op":"create","fields":{"first_name":"\u0000"}}]}`} {
			sam.Post(path, body).Want(400, "VALIDATION")
		}
		sam.Post(path, `{"items":[{"op":"create","fields":{"first_name":"`+strings.Repeat("x", 1<<20)+`"}}]}`).Want(413, "PAYLOAD_TOO_LARGE")
		sam.With("Content-Type", "text/plain").Post(path, `{}`).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		sam.Post(path+"?atomic=false", `{"items":[`+one+`]}`).Want(400, "VALIDATION")
		sam.Get(path).Want(405, "METHOD_NOT_ALLOWED")
		// Permission comes before the body.
		nina.Post(path, `{`).Want(403, "FORBIDDEN")
		sam.Post("/public/v1/data/nothing/batch", `{`).Want(404, "NOT_FOUND")
		petra.Post("/public/v1/data/user/batch", `{}`).Want(400, "VALIDATION")
		w.Anyone().Post(path, `{`).Want(401, "UNAUTHORIZED")
		user := petra.Get("/public/v1/data/user").Want(200, "").Records()[0]["id"].(string)
		list := itemsOf(t, petra.Post("/public/v1/data/user/batch", `{"atomic":false,"items":[{"op":"update","id":"`+user+`","fields":{"company":"Acme"}},{"op":"delete","id":"`+user+`"},
			{"op":"upsert","by":"email","fields":{}},{"op":"create","fields":{}}]}`))
		if read := petra.Get("/public/v1/data/user/"+user).Want(200, ""); !strings.Contains(string(read.Body), string(list[0].Data)) || !strings.Contains(string(list[0].Data), `"company":"Acme"`) {
			t.Errorf("a user: %s, read %s", list[0].Data, read.Body)
		}
		for _, it := range list[1:] {
			if it.Status != 403 {
				t.Errorf("a user: %d %s", it.Status, it.Error)
			}
		}
	})
}

// A batch counts as one request for each ten items (contract L2).
func TestABatchCountsAsATenthOfItsItems(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	w.Clock.Stop()
	sam := w.Key("sam@acme.example", gatetest.RateLimit(30))
	batch := func(n int) string {
		return `{"atomic":false,"items":[` + strings.TrimSuffix(strings.Repeat(`{"op":"create","fields":{"first_name":"x"}},`, n), ",") + `]}`
	}
	left := func(a *gatetest.Answer, want string) {
		t.Helper()
		if got := a.Header.Get("X-RateLimit-Remaining"); got != want {
			t.Errorf("%.60s: %s are left, want %s", a.Call, got, want)
		}
	}
	left(sam.Post(contact+"/batch", batch(10)).Want(200, ""), "29")
	left(sam.Post(contact+"/batch", batch(11)).Want(200, ""), "27")
	keyed := sam.With("Idempotency-Key", "k")
	left(keyed.Post(contact+"/batch", batch(100)).Want(200, ""), "17")
	left(keyed.Post(contact+"/batch", batch(100)).Want(200, ""), "16") // done before: one
	left(sam.Post(contact+"/batch", `{}`).Want(400, "VALIDATION"), "15")
	left(sam.Post(contact+"/batch", batch(200)).Want(429, "RATE_LIMITED"), "14")
	left(sam.Get(contact).Want(200, ""), "13")
	if n := len(sam.Get(contact+"?limit=200").Want(200, "").Records()); n != 121 {
		t.Errorf("%d records", n)
	}
	// Under a limit that is less than the batch counts, it takes the whole window.
	few := w.Key("sam@acme.example", gatetest.RateLimit(5))
	left(few.Post(contact+"/batch", batch(200)).Want(200, ""), "0")
	few.Get(contact).Want(429, "RATE_LIMITED")
}

// A batch that finds no turn at the writer within its 10 s does nothing and is charged to
// nobody, for none of its items.
func TestABatchWithoutATurnIsChargedToNobody(t *testing.T) {
	t.Parallel() // it waits
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	w.Clock.Stop()
	sam := w.Key("sam@acme.example", gatetest.RateLimit(30))
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- w.DB().For("other").Write(t.Context(), func(db.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	body := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"op":"create","fields":{"first_name":"x"}},`, 100), ",") + `]}`
	a := sam.Post(contact+"/batch", body).Want(503, "OVERLOADED")
	if left := a.Header.Get("X-RateLimit-Remaining"); left != "30" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s are left: %v", left, a.Header)
	}
	close(end)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if list := sam.Get(contact).Want(200, ""); len(list.Records()) != 0 || list.Header.Get("X-RateLimit-Remaining") != "29" {
		t.Errorf("%s", list.Body)
	}
}
