package prove

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// way is how a writer has its changes made. Each request changes all that it names, or nothing.
type way interface {
	// changes returns how many changes the next request should make.
	changes(*rand.Rand) int
	// send makes changes of records. Those of ids are there, "" stands for one that is not.
	send(c *client, chs []change, ids []string) (*answer, error)
	// id returns the id of the n-th record that an answer names.
	id(a *answer, n int) string
}

// oneByOne is a way whose requests make one change, and answer its record.
type oneByOne struct{}

func (oneByOne) changes(*rand.Rand) int { return 1 }

func (oneByOne) id(a *answer, _ int) string {
	r, _ := a.record()
	return r.ID
}

// byRecord is the standard API's way for one record.
type byRecord struct{ oneByOne }

func (byRecord) send(c *client, chs []change, ids []string) (*answer, error) {
	switch ch, id := chs[0], ids[0]; {
	case ch.number == 0:
		return c.do("DELETE", contact+"/"+id, "")
	case id == "":
		return c.do("POST", contact, values(ch.email, ch.number))
	default:
		return c.do("PATCH", contact+"/"+id, values(ch.email, ch.number))
	}
}

// byBatch is a batch of creates, updates, upserts and deletes. A fleet that settles or trusts has none, as it
// asks for one change.
type byBatch struct{}

func (byBatch) changes(r *rand.Rand) int { return 2 + r.IntN(19) }

func (byBatch) send(c *client, chs []change, ids []string) (*answer, error) {
	items := make([]string, len(chs))
	for i, ch := range chs {
		switch fields := values(ch.email, ch.number); {
		case ch.number == 0:
			items[i] = fmt.Sprintf(`{"op":"delete","id":%q}`, ids[i])
		case ch.number%3 == 0:
			items[i] = `{"op":"upsert","by":"email","fields":` + fields + `}`
		case ids[i] == "":
			items[i] = `{"op":"create","fields":` + fields + `}`
		default:
			items[i] = fmt.Sprintf(`{"op":"update","id":%q,"fields":%s}`, ids[i], fields)
		}
	}
	return c.do("POST", contact+"/batch", `{"items":[`+strings.Join(items, ",")+`]}`)
}

func (byBatch) id(a *answer, n int) string {
	var done struct{ Data []struct{ Data record } }
	if err := json.Unmarshal(a.body, &done); err != nil || n >= len(done.Data) {
		return ""
	}
	return done.Data[n].Data.ID
}

// byEndpoint is an endpoint of the tenant's own, called with the key.
type byEndpoint struct {
	oneByOne
	slug string
}

func (e byEndpoint) send(c *client, chs []change, ids []string) (*answer, error) {
	return c.do("POST", "/public/v1/custom/"+e.slug, asInputs(chs[0], ids[0]))
}

func asInputs(ch change, id string) string {
	return fmt.Sprintf(`{"email":%q,"number":%d,"id":%q,"pad":%q}`, ch.email, ch.number, id, strings.Repeat("x", padding(ch.number)))
}

// byWebhook is such an endpoint, called with its secret token; as a form, if it is one.
type byWebhook struct {
	oneByOne
	slug, token string
	form        bool
}

func (h byWebhook) send(c *client, chs []change, ids []string) (*answer, error) {
	ch := chs[0]
	body, kind := asInputs(ch, ids[0]), "application/json"
	if h.form {
		kind = "application/x-www-form-urlencoded"
		body = url.Values{
			"email": {ch.email}, "number": {strconv.FormatInt(ch.number, 10)}, "id": {ids[0]}, "pad": {strings.Repeat("x", padding(ch.number))},
		}.Encode()
	}
	r, err := http.NewRequest(http.MethodPost, c.base+"/public/v1/custom/"+h.slug, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = host
	r.Header.Set("X-Webhook-Token", h.token)
	r.Header.Set("Content-Type", kind)
	return exchange(c.http, r)
}

// waysManifest has the endpoints of newFleetOfAllKinds: a component and a flow that make a change,
// each for a key and for a token.
const waysManifest = manifest + `
logic_components:
  - name: change
    source: |
      export default function handler({ email, number, id, pad }) {
        if (number === 0) return records.delete("contact", id);
        const { id: made } = records.upsert("contact", "email", { email, first_name: "name " + number, score: number, extra: { n: number, pad } });
        return { id: made };
      }
automations:
  - name: change
    trigger: http.request
    input_schema: [{name: email, type: text, required: true}, {name: number, type: number, required: true}, {name: id, type: text}, {name: pad, type: text}]
    outputs: [{name: id, type: text}]
    nodes:
      - type: if
        when: inputs.number == 0
        then:
          - {type: record.delete, entity: contact, record_id: "{{inputs.id}}"}
        else:
          - id: made
            type: record.upsert
            entity: contact
            by: email
            fields: {email: "{{inputs.email}}", first_name: "name {{inputs.number}}", score: "{{inputs.number}}", extra: {n: "{{inputs.number}}", pad: "{{inputs.pad}}"}}
          - {type: output, set: {id: "{{made.id}}"}}
custom_endpoints:
  - {slug: component, target: {component: change}}
  - {slug: flow, target: {automation: change}}
  - {slug: component-hook, target: {component: change}, auth: token, run_as: olivia@acme.example, reply: result, rate_limit_per_minute: 100000000}
  - {slug: flow-hook, target: {automation: change}, auth: token, run_as: olivia@acme.example, reply: result, rate_limit_per_minute: 100000000}
`

// newFleetOfAllKinds returns sixteen writers, and gives the tenant the endpoints that some of them use: six
// change one record after another by the standard API, four by batches, two by a component and two
// by a flow with the key, and two with tokens, one of them by forms.
func newFleetOfAllKinds(p *proof, w *world) *fleet {
	p.t.Helper()
	w.apply(waysManifest)
	token := func(slug string) string {
		return strings.TrimSpace(w.must("endpoint", "token", "--tenant", "acme", "--slug", slug))
	}
	f := newFleet(p, 16)
	for i, way := range []way{
		byBatch{}, byBatch{}, byBatch{}, byBatch{},
		byEndpoint{slug: "component"}, byEndpoint{slug: "flow"}, byEndpoint{slug: "flow"}, byEndpoint{slug: "component"},
		byWebhook{slug: "component-hook", token: token("component-hook")},
		byWebhook{slug: "flow-hook", token: token("flow-hook"), form: true},
	} {
		f.writers[6+i].way = way
	}
	return f
}
