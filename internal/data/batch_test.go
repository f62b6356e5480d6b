package data_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
