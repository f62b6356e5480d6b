package prove

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// histories is the manifest of the histories' tenant.
const histories = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
unauthenticated_per_ip_per_minute: 100000000
external_identity:
  enabled: true
  activation_mode: none
  rate_limit_per_minute: 100000000
  limits: {login_per_ip_per_minute: 1000000, login_per_email_per_15_minutes: 1000000, refresh_per_token_per_minute: 1000000}
entities:
  - {name: register, fields: [{name: value, type: number}]}
  - {name: effect, fields: [{name: ref, type: text, indexed: true}]}
users: [{email: olivia@acme.example, name: Olivia Owner, owner: true}]
logic_components:
  - name: book
    source: |
      export default function handler({ ref }) {
        records.create("effect", { ref });
        return {};
      }
custom_endpoints:
  - {slug: token, target: {component: book}, auth: token, reply: receipt, rate_limit_per_minute: 100000000}
`

// How far the nodes' clocks are from that of the database, and how late the second node's
// database may answer.
const (
	behind  = -1300 * time.Millisecond
	ahead   = 1700 * time.Millisecond
	latency = 20 * time.Millisecond
)

// unknown is the output of an operation whose outcome its caller was not told.
type unknown struct{}

// operation is one call of a history: what is asked, of which node, and what came of it. out is
// called once; it returns unknown, or what the model of the subject takes.
type operation struct {
	in    any
	out   func(n *gatetest.Node) any
	stale func(n *gatetest.Node, out any) bool // whether the node may give this answer from a second ago
}

// subject is the thing that the calls of a history act on, with its model.
type subject struct {
	porcupine.Model
	next func(r *rand.Rand) operation // is called by all clients
}

// TestProveConsistency checks histories of concurrent calls to two nodes, whose clocks differ and
// one of which reaches the database late: some order of the calls, in which each takes effect
// between its request and its answer, gives the answers that were given.
func TestProveConsistency(t *testing.T) {
	together(t)
	p := begin(t, "CONS-1", db.Postgres)
	w := gatetest.New(t, db.Postgres)
	w.Apply(histories)
	w.Clock.Advance(behind)
	proxy := newProxy(t, w.DatabaseAddress())
	late := &gatetest.Clock{}
	late.Advance(ahead)
	w.AddNodeWith(gatetest.NodeOptions{Clock: late, Database: proxy.address()})
	s := subjects{w: w, key: w.Key(owner), webhook: w.Webhook("token")}
	s.key.Post("/public/v1/auth/register", `{"email":"eva@customer.example","password":"a bell, a basket","name":"Eva"}`).Want(http.StatusCreated, "")
	w.SetPassword("acme", owner)
	made := map[string]func(*rand.Rand) subject{
		"record": s.record, "delivery": s.delivery, "chain": s.chain, "key": s.apiKey, "session": s.session,
	}
	for i := range scale(2, 200) {
		for _, kind := range slices.Sorted(maps.Keys(made)) {
			proxy.delay.Store(p.rand.Int64N(int64(latency)))
			about := made[kind](p.rand)
			history := run(w.Nodes, about, p.rand.Uint64())
			p.tried(1)
			p.add("operations", len(history))
			for _, o := range history {
				if o.Output == (unknown{}) {
					p.add("outcome_unknown", 1)
				}
			}
			if result := porcupine.CheckOperationsTimeout(about.Model, history, time.Minute); result != porcupine.Ok {
				p.fail("history %d of a %s: %s\n%s", i, kind, result, told(history))
			}
		}
	}
}

// run has some clients call the nodes at random, and returns their history.
func run(nodes []*gatetest.Node, about subject, seed uint64) (history []porcupine.Operation) {
	const clients, calls = 6, 8
	begun := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for range calls {
				o, n := about.next(r), nodes[r.IntN(len(nodes))]
				h := porcupine.Operation{ClientId: c, Input: o.in, Call: int64(time.Since(begun))}
				h.Output, h.Return = o.out(n), int64(time.Since(begun))
				if h.Output == (unknown{}) {
					h.Return = math.MaxInt64
				}
				if o.stale != nil && o.stale(n, h.Output) {
					h.Call -= int64(notice)
				}
				mu.Lock()
				history = append(history, h)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return history
}

// notice is within what time a node learns of a change that another made (contract H15); longer
// where the machine does other work beside.
var notice = time.Duration(scale(10, 1)) * time.Second

// told writes a history for a person.
func told(history []porcupine.Operation) (text string) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range history {
		text += fmt.Sprintf("%9.3f to %9.3f ms: %+v is %+v\n", float64(o.Call)/1e6, float64(o.Return)/1e6, o.Input, o.Output)
	}
	return text
}

// subjects makes the subjects of histories.
type subjects struct {
	w       *gatetest.World
	key     *gatetest.Actor
	webhook *gatetest.Actor
	refs    int
}

// answered returns the answer to a call, or unknown where there is none, or one of 503.
func answered(a *gatetest.Actor, n *gatetest.Node, method, path, body string, of func(*gatetest.Answer) any) any {
	answer, err := a.At(n).Try(method, path, body)
	if err != nil || answer.Status == http.StatusServiceUnavailable {
		return unknown{}
	}
	return of(answer)
}

// put is a change of a register: to a value, and only from another one unless that is 0.
type put struct{ to, from int }

// read asks for the value.
type read struct{}

// A register that may be written to if it has not changed (If-Match). It has the value 1 first, and
// no value twice. The output of a write is whether it was done, of a read the value.
var registerModel = porcupine.Model{
	Init: func() any { return 1 },
	Step: func(state, in, out any) (bool, any) {
		is := state.(int)
		if _, ok := in.(read); ok {
			return out == (unknown{}) || out == is, is
		}
		w := in.(put)
		fits := w.from == 0 || w.from == is
		switch {
		case out == (unknown{}) && !fits:
			return true, is
		case out == (unknown{}):
			return true, w.to
		case out == true:
			return fits, w.to
		}
		return out == false && !fits, is
	},
}

func (s *subjects) record(*rand.Rand) subject {
	path := "/public/v1/data/register"
	made := s.key.Post(path, `{"value":1}`).Want(http.StatusCreated, "")
	path += "/" + made.ID()
	var mu sync.Mutex
	last, tags, seen := 1, map[int]string{1: made.Header.Get("ETag")}, []int{1}
	note := func(value int, tag string) any {
		mu.Lock()
		defer mu.Unlock()
		if tags[value] == "" {
			tags[value], seen = tag, append(seen, value)
		}
		return value
	}
	return subject{registerModel, func(r *rand.Rand) operation {
		if r.IntN(2) == 0 {
			return operation{in: read{}, out: func(n *gatetest.Node) any {
				return answered(s.key, n, "GET", path, "", func(a *gatetest.Answer) any {
					value, _ := a.Record()["value"].(float64)
					return note(int(value), a.Header.Get("ETag"))
				})
			}}
		}
		mu.Lock()
		defer mu.Unlock()
		last++
		o, caller := put{to: last}, s.key
		if r.IntN(2) == 0 {
			o.from = seen[len(seen)-1-r.IntN(min(2, len(seen)))]
			caller = caller.With("If-Match", tags[o.from])
		}
		return operation{in: o, out: func(n *gatetest.Node) any {
			return answered(caller, n, "PATCH", path, fmt.Sprintf(`{"value":%d}`, o.to), func(a *gatetest.Answer) any {
				if a.Status == http.StatusOK {
					note(o.to, a.Header.Get("ETag"))
					return true
				}
				return a.Status != http.StatusPreconditionFailed
			})
		}}
	}}
}

// A delivery takes effect once. The output of one is the status, of a read how often it did.
var deliveryModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		times := state.(int)
		if _, ok := in.(read); ok {
			return out == (unknown{}) || out == times, times
		}
		switch out {
		case http.StatusAccepted:
			return times == 0, 1
		case http.StatusOK:
			return times == 1, 1
		}
		return out == (unknown{}), 1
	},
}

func (s *subjects) delivery(*rand.Rand) subject {
	s.refs++
	ref := "ref-" + strconv.Itoa(s.refs)
	return subject{deliveryModel, func(r *rand.Rand) operation {
		if r.IntN(3) == 0 {
			return operation{in: read{}, out: func(n *gatetest.Node) any {
				return answered(s.key, n, "GET", "/public/v1/data/effect?filter[ref]="+ref, "", func(a *gatetest.Answer) any { return len(a.Records()) })
			}}
		}
		return operation{in: put{}, out: func(n *gatetest.Node) any {
			return answered(s.webhook.With("Idempotency-Key", ref), n, "POST", "/public/v1/custom/token", fmt.Sprintf(`{"ref":%q}`, ref),
				func(a *gatetest.Answer) any { return a.Status })
		}}
	}}
}

// tokens are what a chain of refresh tokens has come to: the successor of each, those that were
// logged out, and whether that was the newest, which ends the session.
type tokens struct {
	after map[string]string // "?" where the caller was not told
	out   map[string]bool
	ended bool
}

// refresh and logout are the calls with a token.
type (
	refresh struct{ token string }
	logout  struct{ token string }
)

// A token is answered with its one successor, unless one of the two was logged out or the session
// has ended. The output of a refresh is the successor, "" where it was refused. All within the 30 s
// of grace.
var chainModel = (&porcupine.NondeterministicModel{
	Init:  func() []any { return []any{tokens{after: map[string]string{}, out: map[string]bool{}}} },
	Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	Step: func(state, in, out any) []any {
		was := state.(tokens)
		is := tokens{maps.Clone(was.after), maps.Clone(was.out), was.ended}
		if o, ok := in.(logout); ok {
			if is.after[o.token] == "" {
				is.ended = true
			} else {
				is.out[o.token] = true
			}
			return []any{is}
		}
		token := in.(refresh).token
		next := was.after[token]
		refused := was.ended || was.out[token] || next != "" && was.out[next]
		switch {
		case out == (unknown{}):
			if is.after[token] == "" && !refused {
				is.after[token] = "?"
				return []any{was, is}
			}
			return []any{was}
		case out == "" && refused:
			return []any{was}
		case out == "" || refused || next != "" && next != "?" && next != out || was.out[out.(string)]:
			return nil
		}
		is.after[token] = out.(string)
		return []any{is}
	},
}).ToModel()

func (s *subjects) chain(*rand.Rand) subject {
	anyone := s.w.Anyone()
	known := []string{refreshToken(anyone.Post("/public/v1/auth/login", `{"email":"eva@customer.example","password":"a bell, a basket"}`).Want(http.StatusOK, ""))}
	var mu sync.Mutex
	return subject{chainModel, func(r *rand.Rand) operation {
		mu.Lock()
		defer mu.Unlock()
		token := known[len(known)-1-r.IntN(min(3, len(known)))]
		body := fmt.Sprintf(`{"refreshToken":%q}`, token)
		if len(known) > 4 && r.IntN(10) == 0 {
			return operation{in: logout{token}, out: func(n *gatetest.Node) any {
				return answered(anyone, n, "POST", "/public/v1/auth/logout", body, func(a *gatetest.Answer) any { return a.Status })
			}}
		}
		return operation{in: refresh{token}, out: func(n *gatetest.Node) any {
			return answered(anyone, n, "POST", "/public/v1/auth/refresh", body, func(a *gatetest.Answer) any {
				switch a.Status {
				case http.StatusUnauthorized:
					return ""
				case http.StatusOK:
				default:
					return string(a.Body)
				}
				next := refreshToken(a)
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(known, next) {
					known = append(known, next)
				}
				return next
			})
		}}
	}}
}

func refreshToken(a *gatetest.Answer) string { return strings.Trim(a.Member("refreshToken"), `"`) }

// A credential works until it is ended. The output of a use is the status.
var credentialModel = porcupine.Model{
	Init: func() any { return true },
	Step: func(state, in, out any) (bool, any) {
		works := state.(bool)
		if _, ok := in.(put); ok { // ends it
			return true, false
		}
		return out == (unknown{}) || works && out == http.StatusOK || !works && out == http.StatusUnauthorized, works
	},
}

// credential makes a subject of one that is ended by a node, once. early says that a use began
// before its end was answered. A node that has refused it is not stale any more.
func credential(use func(*gatetest.Node) any, end func(*gatetest.Node) any, stale func(by, n *gatetest.Node, early bool) bool) subject {
	var mu sync.Mutex
	var by *gatetest.Node
	uses, ended, answered := 0, false, false
	refused := map[*gatetest.Node]bool{}
	return subject{credentialModel, func(r *rand.Rand) operation {
		mu.Lock()
		defer mu.Unlock()
		if uses++; uses > 8 && !ended && r.IntN(8) == 0 {
			ended = true
			return operation{in: put{}, out: func(n *gatetest.Node) any {
				mu.Lock()
				by = n
				mu.Unlock()
				out := end(n)
				mu.Lock()
				answered = true
				mu.Unlock()
				return out
			}}
		}
		early, knew := false, false
		return operation{in: read{}, out: func(n *gatetest.Node) any {
			mu.Lock()
			early, knew = !answered, refused[n]
			mu.Unlock()
			out := use(n)
			mu.Lock()
			refused[n] = refused[n] || out == http.StatusUnauthorized
			mu.Unlock()
			return out
		}, stale: func(n *gatetest.Node, out any) bool {
			mu.Lock()
			defer mu.Unlock()
			return out == http.StatusOK && !knew && stale(by, n, early)
		}}
	}}
}

// apiKey is a key that is deleted. The other node may take it for a second more, and the node
// itself until it has the database's answer, of which the other may hear first (contract H15).
func (s *subjects) apiKey(*rand.Rand) subject {
	key := s.w.Key(owner)
	status := func(a *gatetest.Answer) any { return a.Status }
	return credential(
		func(n *gatetest.Node) any { return answered(key, n, "GET", "/public/v1/me", "", status) },
		func(n *gatetest.Node) any {
			if err := n.Server.Keys().Delete(s.w.T.Context(), "test", "acme", key.KeyID); err != nil {
				return unknown{}
			}
			return true
		},
		keyMayBeStale,
	)
}

func keyMayBeStale(by, n *gatetest.Node, early bool) bool { return by != nil && (by != n || early) }

// session is a session of the console that is signed out of. It ends everywhere at once.
func (s *subjects) session(*rand.Rand) subject {
	s.refs++
	signIn := s.w.Anyone().With("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", s.refs/250, s.refs%250+1))
	staff := s.w.Anyone()
	staff.Cookie = signIn.SignIn(owner, gatetest.StaffPassword).Want(http.StatusOK, "").Cookie()
	status := func(a *gatetest.Answer) any { return a.Status }
	return credential(
		func(n *gatetest.Node) any { return answered(staff, n, "GET", "/admin/v1/account/sessions", "", status) },
		func(n *gatetest.Node) any { return answered(staff, n, "DELETE", "/admin/v1/session", "", status) },
		func(_, _ *gatetest.Node, _ bool) bool { return false },
	)
}

// Each model finds what may not be.
func TestTheModelsFindAnomalies(t *testing.T) {
	one := func(in, out any, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: from, Return: to}
	}
	for about, c := range map[string]struct {
		model porcupine.Model
		list  []porcupine.Operation
		right bool
	}{
		"a write that was lost":        {registerModel, []porcupine.Operation{one(put{to: 2}, true, 0, 1), one(read{}, 1, 2, 3)}, false},
		"a read beside a write":        {registerModel, []porcupine.Operation{one(put{to: 2}, true, 0, 3), one(read{}, 1, 1, 2)}, true},
		"two of one version":           {registerModel, []porcupine.Operation{one(put{2, 1}, true, 0, 9), one(put{3, 1}, true, 0, 9)}, false},
		"one of one version":           {registerModel, []porcupine.Operation{one(put{2, 1}, true, 0, 9), one(put{3, 1}, false, 0, 9)}, true},
		"a write that may be":          {registerModel, []porcupine.Operation{one(put{to: 2}, unknown{}, 0, math.MaxInt64), one(read{}, 1, 5, 6), one(read{}, 2, 7, 8)}, true},
		"a read of the past":           {registerModel, []porcupine.Operation{one(put{to: 2}, unknown{}, 0, math.MaxInt64), one(read{}, 2, 5, 6), one(read{}, 1, 7, 8)}, false},
		"a delivery done twice":        {deliveryModel, []porcupine.Operation{one(put{}, 202, 0, 9), one(put{}, 202, 0, 9)}, false},
		"a duplicate of nothing":       {deliveryModel, []porcupine.Operation{one(put{}, 200, 0, 1), one(put{}, 202, 2, 3)}, false},
		"a receipt before its effect":  {deliveryModel, []porcupine.Operation{one(put{}, 202, 0, 1), one(read{}, 0, 2, 3)}, false},
		"two successors":               {chainModel, []porcupine.Operation{one(refresh{"a"}, "b", 0, 9), one(refresh{"a"}, "c", 0, 9)}, false},
		"a token that was logged out":  {chainModel, []porcupine.Operation{one(logout{"a"}, 200, 0, 1), one(refresh{"a"}, "b", 2, 3)}, false},
		"a token refused for nothing":  {chainModel, []porcupine.Operation{one(refresh{"a"}, "", 0, 1), one(logout{"a"}, 200, 2, 3)}, false},
		"a token refused for a reason": {chainModel, []porcupine.Operation{one(refresh{"a"}, "b", 0, 1), one(logout{"b"}, 200, 2, 9), one(refresh{"a"}, "", 3, 8)}, true},
		"a token after its session":    {chainModel, []porcupine.Operation{one(refresh{"a"}, "b", 0, 1), one(logout{"b"}, 200, 2, 3), one(refresh{"a"}, "b", 4, 5)}, false},
		"a successor nobody was told":  {chainModel, []porcupine.Operation{one(refresh{"a"}, unknown{}, 0, math.MaxInt64), one(logout{"a"}, 200, 2, 3), one(refresh{"b"}, "c", 4, 5)}, true},
		"a key after its end":          {credentialModel, []porcupine.Operation{one(put{}, true, 0, 1), one(read{}, 200, 2, 3)}, false},
		"a key before its end":         {credentialModel, []porcupine.Operation{one(put{}, true, 0, 3), one(read{}, 200, 1, 2), one(read{}, 401, 4, 5)}, true},
	} {
		if got := porcupine.CheckOperations(c.model, c.list); got != c.right {
			t.Errorf("%s: %v", about, got)
		}
	}
}

// A key may be taken after its deletion by the other node, and by the node itself where the use
// began before the deletion was answered.
func TestAKeyIsStaleUntilItsDeletionIsAnswered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	by, other := &gatetest.Node{}, &gatetest.Node{}
	status := http.StatusOK
	s := credential(func(*gatetest.Node) any { return status }, func(*gatetest.Node) any { return true }, keyMayBeStale)
	var early, end operation
	for end.in == nil {
		if o := s.next(r); o.in == (read{}) {
			early = o
			early.out(by)
		} else {
			end = o
		}
	}
	if early.stale(by, http.StatusOK) || early.stale(other, http.StatusOK) {
		t.Error("a key that nobody deletes is stale")
	}
	end.out(by)
	late := s.next(r)
	late.out(by)
	if !early.stale(by, http.StatusOK) || late.stale(by, http.StatusOK) || !late.stale(other, http.StatusOK) || early.stale(by, http.StatusUnauthorized) {
		t.Error("stale is another than what H15 allows")
	}
	status = http.StatusUnauthorized
	s.next(r).out(other)
	status = http.StatusOK
	again := s.next(r)
	again.out(other)
	if again.stale(other, http.StatusOK) {
		t.Error("a node that has refused the key may take it again")
	}
}
