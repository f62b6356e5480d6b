package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/gatetest"
)

// observed is acme with staff who may see the log, and who may not.
const observed = acme + `
  - {email: wanda@acme.example, name: Wanda Watcher, permission_sets: [watch]}
  - {email: nina@acme.example, name: Nina Namer, permission_sets: [watch, names]}
`

func observedTenant() string {
	return strings.Replace(observed, "permission_sets:\n", `permission_sets:
  - {name: watch, system: [manage_endpoints]}
  - {name: names, entities: {user: {read: true, fields: {name: {read: false}}}}}
`, 1)
}

type logList struct {
	Data []logEntry
	Meta struct {
		Count      int
		HasMore    bool
		NextCursor *string
	}
}

type logEntry struct {
	ID, RequestID, Method, Path string
	Status                      int
	Code, Gate, Credential      *string
	User, RealUser              *struct {
		ID          string
		Email, Name *string
	}
	Key *struct {
		ID, Prefix string
		Name       *string
	}
	Track []struct{ Gate, State string }
}

func listLog(t *testing.T, a *gatetest.Actor, query string) (l logList) {
	t.Helper()
	if err := json.Unmarshal(a.Get("/admin/v1/audit?"+query).Want(200, "").Body, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// entriesOf polls until a filter finds n entries, as entries are written soon after
// their answers.
func entriesOf(t *testing.T, a *gatetest.Actor, query string, n int) []logEntry {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if l := listLog(t, a, query); len(l.Data) == n {
			return l.Data
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: %d entries, want %d", query, len(l.Data), n)
		}
	}
}

// TestTheLogTellsAtWhichGateARequestStopped asks the service for each refusal, and
// finds the gate in its entry.
func TestTheLogTellsAtWhichGateARequestStopped(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia := w.Staff("olivia@acme.example")
		sam, rita := w.Key("sam@acme.example"), w.Key("rita@acme.example")
		narrow := w.Key("sam@acme.example", func(s *apikey.CreateSpec) { s.Allowlist = []string{"192.0.2.1"} })
		slow := w.Key("sam@acme.example", gatetest.RateLimit(1))
		one := "/public/v1/data/contact/" + sam.Post("/public/v1/data/contact", `{"first_name":"Ada","stage":"won"}`).Want(201, "").ID()
		other := "/public/v1/data/contact/" + sam.Post("/public/v1/data/contact", `{"first_name":"Bob","email":"b@x.example"}`).Want(201, "").ID()
		slow.Get(one)
		nobody := w.Anyone()
		nobody.Token = "svc_api_" + strings.Repeat("0", 64)
		for gate, a := range map[string]*gatetest.Answer{
			"credential": nobody.Get(one).Want(401, "UNAUTHORIZED"),
			"address":    narrow.Get(one).Want(403, "IP_DENIED"),
			"origin":     sam.With("Origin", "https://evil.example").Get(one).Want(403, "CORS_DENIED"),
			"rate":       slow.Get(one).Want(429, "RATE_LIMITED"),
			"permission": rita.Post("/public/v1/data/contact", `{"first_name":"x"}`).Want(403, "FORBIDDEN"),
			"body":       sam.Post("/public/v1/data/contact", `{"first_name":7}`).Want(400, "VALIDATION"),
			"fields":     sam.Patch(one, `{"owner_id":"`+w.UserID("acme", "rita@acme.example")+`"}`).Want(403, "FORBIDDEN"),
			"record":     rita.Get(other).Want(404, "NOT_FOUND"),
			"conflict":   sam.Post("/public/v1/data/contact", `{"first_name":"x","email":"b@x.example"}`).Want(409, "CONFLICT"),
			"":           sam.Get(one).Want(200, ""),
		} {
			e := entriesOf(t, olivia, "requestId="+a.Header.Get("X-Request-Id"), 1)[0]
			if got := deref(e.Gate); got != gate {
				t.Errorf("%s: stopped at %q, want %q", a.Call, got, gate)
			}
			var d struct {
				Data struct {
					Track   []struct{ Gate, State string }
					Message *string
				}
			}
			if err := json.Unmarshal(olivia.Get("/admin/v1/audit/"+e.ID).Want(200, "").Body, &d); err != nil {
				t.Fatal(err)
			}
			shut := ""
			for i, g := range d.Data.Track {
				if g.State == "shut" {
					shut += g.Gate
				}
				if i == 0 && g.Gate != "host" || g.State == "unreached" && shut == "" {
					t.Errorf("%s: track %v", a.Call, d.Data.Track)
				}
			}
			if shut != gate || (gate == "") != (d.Data.Message == nil) {
				t.Errorf("%s: shut at %q, want %q; message %q", a.Call, shut, gate, deref(d.Data.Message))
			}
		}
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestTheLogIsFilteredAndPaged(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, sam, rita := w.Staff("olivia@acme.example"), w.Key("sam@acme.example"), w.Key("rita@acme.example")
		for range 7 {
			sam.Get("/public/v1/me").Want(200, "")
			rita.Get("/public/v1/data/account").Want(403, "FORBIDDEN")
		}
		entriesOf(t, olivia, "method=POST", 1) // her sign-in, which may be written after what came after it
		all := entriesOf(t, olivia, "credential=KEY", 14)
		if k := all[0].Key; k == nil || k.ID != rita.KeyID && k.ID != sam.KeyID || deref(k.Name) != "test" {
			t.Errorf("%+v", all[0])
		}
		for query, n := range map[string]int{
			"user=rita@acme.example": 7, "user=" + w.UserID("acme", "sam@acme.example"): 7, "key=" + rita.KeyID: 7, "status=errors": 7, "status=4xx": 7, "status=403": 7,
			"status=404": 0, "endpoint=/me": 7, "endpoint=/me,/data/*": 14, "endpoint=/custom/*": 0, "method=GET&credential=KEY": 14, "method=POST": 1,
			"path=DATA/acc": 7, "ip=127.0.0.1&credential=key": 14, "user=nobody@acme.example": 0, "endpoint=/admin/*": 1, "credential=session": 0,
			"from=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339): 0,
			"to=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339):  0,
		} {
			if l := listLog(t, olivia, query); len(l.Data) != n || l.Meta.Count != n {
				t.Errorf("%s: %d entries, want %d", query, len(l.Data), n)
			}
		}
		var seen []string
		cursor := ""
		for {
			l := listLog(t, olivia, "credential=KEY&limit=5"+cursor)
			for _, e := range l.Data {
				seen = append(seen, e.ID)
			}
			if !l.Meta.HasMore {
				break
			}
			cursor = "&cursor=" + *l.Meta.NextCursor
			olivia.Get("/admin/v1/audit?limit=5"+cursor).Want(400, "VALIDATION") // another filter
		}
		if len(seen) != 14 {
			t.Errorf("%d entries page by page", len(seen))
		}
		for _, query := range []string{
			"unknown=1", "limit=0", "limit=201", "status=200x", "status=7xx", "credential=cookie", "endpoint=/x", "requestId=7", "from=yesterday", "cursor=AAAA", "user=", "key=a&key=b",
		} {
			olivia.Get("/admin/v1/audit?"+query).Want(400, "VALIDATION")
		}
		olivia.Get("/admin/v1/audit/none").Want(404, "NOT_FOUND")
		w.Staff("sam@acme.example").Get("/admin/v1/audit").Want(403, "FORBIDDEN")
		var h struct {
			Data struct {
				Buckets []struct{ Answered, Refused, Failed int }
			}
			Meta struct{ Complete bool }
		}
		if err := json.Unmarshal(olivia.Get("/admin/v1/audit/histogram?credential=KEY&buckets=10").Want(200, "").Body, &h); err != nil {
			t.Fatal(err)
		}
		answered, refused := 0, 0
		for _, b := range h.Data.Buckets {
			answered, refused = answered+b.Answered, refused+b.Refused
		}
		if len(h.Data.Buckets) != 10 || answered != 7 || refused != 7 || !h.Meta.Complete {
			t.Errorf("%+v", h)
		}
	})
}

// Users whom the viewer may not see stay ids, and cannot be searched by address.
func TestTheLogNamesOnlyUsersWhomTheViewerSees(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, wanda, nina := w.Staff("olivia@acme.example"), w.Staff("wanda@acme.example"), w.Staff("nina@acme.example")
		w.Key("sam@acme.example").Get("/public/v1/me").Want(200, "")
		w.Key("wanda@acme.example").Get("/public/v1/me").Want(200, "")
		entriesOf(t, olivia, "endpoint=/me", 2)
		for viewer, want := range map[*gatetest.Actor][2]string{
			olivia: {"wanda@acme.example Wanda Watcher", "sam@acme.example Sam Seller"},
			wanda:  {"wanda@acme.example Wanda Watcher", " "},
			nina:   {"wanda@acme.example ", "sam@acme.example "},
		} {
			for i, e := range listLog(t, viewer, "endpoint=/me").Data {
				if got := deref(e.User.Email) + " " + deref(e.User.Name); got != want[i] || e.User.ID == "" {
					t.Errorf("%q, want %q", got, want[i])
				}
			}
		}
		unknown := wanda.Get("/admin/v1/audit?user=" + url.QueryEscape("nobody@acme.example"))
		hidden := wanda.Get("/admin/v1/audit?user=" + url.QueryEscape("sam@acme.example"))
		if string(unknown.Body) != string(hidden.Body) || hidden.Status != 200 {
			t.Errorf("an unknown address: %s, one that Wanda may not see: %s", unknown.Body, hidden.Body)
		}
		if got := listLog(t, wanda, "user=wanda@acme.example&endpoint=/me"); len(got.Data) != 1 {
			t.Errorf("of herself: %+v", got)
		}
		// The owner's entries and wanda's, of another tenant, are not found by their ids.
		w.Apply("tenant: umbrella\nhosts: [umbrella.localhost]\nusers: [{email: o@umbrella.example, name: O, owner: true}]\n")
		id := listLog(t, olivia, "endpoint=/me").Data[0].ID
		w.StaffOf("umbrella", "umbrella.localhost", "o@umbrella.example").Get("/admin/v1/audit/"+id).Want(404, "NOT_FOUND")
	})
}

// tailEvents opens a live tail and returns its events, by a channel that is closed
// when the tail ends.
func tailEvents(t *testing.T, a *gatetest.Actor, query string) (events <-chan [2]string, hangUp func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Node.URL+"/admin/v1/audit/tail?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = a.Host
	r.Header.Set("Cookie", a.Cookie)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	out := make(chan [2]string, 100)
	lines := bufio.NewScanner(res.Body)
	lines.Scan() // the comment that says that it listens
	go func() {
		defer close(out)
		defer res.Body.Close()
		event := ""
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- [2]string{event, data}
			}
		}
	}()
	return out, cancel
}

func nextEvent(t *testing.T, events <-chan [2]string, want string) (e logEntry) {
	t.Helper()
	select {
	case got := <-events:
		if got[0] != want {
			t.Fatalf("event %q, want %q", got, want)
		}
		if err := json.Unmarshal([]byte(got[1]), &e); err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no event %s", want)
	}
	return e
}

func TestALiveTailShowsWhatItIsAskedFor(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, sam := w.Staff("olivia@acme.example"), w.Key("sam@acme.example")
		sam.Get("/public/v1/me").Want(200, "")
		all, hangUp := tailEvents(t, olivia, "")
		errors, _ := tailEvents(t, olivia, "status=errors&user=sam@acme.example")
		sam.Get("/public/v1/me").Want(200, "")
		if e := nextEvent(t, all, "entry"); e.Path != "/public/v1/me" || deref(e.User.Email) != "sam@acme.example" {
			t.Errorf("%+v", e)
		}
		missing := sam.Get("/public/v1/data/contact/none").Want(404, "NOT_FOUND")
		last := nextEvent(t, all, "entry")
		for _, e := range []logEntry{last, nextEvent(t, errors, "entry")} {
			if e.RequestID != missing.Header.Get("X-Request-Id") {
				t.Errorf("%+v", e)
			}
		}
		third, _ := tailEvents(t, olivia, "path=none")
		olivia.Get("/admin/v1/audit/tail").Want(429, "RATE_LIMITED") // the fourth of one session
		hangUp()
		for range all {
		}
		// A tail goes on where an interrupted one was.
		sam.Get("/public/v1/data/none").Want(404, "NOT_FOUND")
		var again <-chan [2]string
		for deadline := time.Now().Add(20 * time.Second); again == nil; time.Sleep(20 * time.Millisecond) {
			if a := olivia.Get("/admin/v1/audit/tail?limit=1"); a.Status != 400 {
				t.Fatalf("%d", a.Status)
			}
			entriesOf(t, olivia, "path=data/none", 1)
			again, _ = tailEvents(t, olivia, "credential=KEY&after="+last.ID)
			if time.Now().After(deadline) {
				t.Fatal("no place becomes free")
			}
		}
		if e := nextEvent(t, again, "entry"); e.Path != "/public/v1/data/none" {
			t.Errorf("%+v", e)
		}
		// They end with the session.
		olivia.Delete("/admin/v1/session").Want(200, "")
		for _, events := range []<-chan [2]string{errors, third} {
			for e := range events {
				if e[0] != "ended" && e[0] != "entry" {
					t.Errorf("%v", e)
				}
			}
		}
	})
}

// A tail that is open does not keep a server from stopping.
func TestALiveTailEndsWhenTheServerDrains(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		events, _ := tailEvents(t, w.Staff("olivia@acme.example"), "")
		begun := time.Now()
		w.Nodes[0].Stop()
		for range events {
		}
		if took := time.Since(begun); took > 25*time.Second { // the drain alone would wait 30 s
			t.Errorf("it took %v", took)
		}
	})
}

func TestUsageAndOverview(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, sam, slow := w.Staff("olivia@acme.example"), w.Key("sam@acme.example"), w.Key("sam@acme.example", gatetest.RateLimit(1))
		var o struct {
			Data struct {
				Requests *struct {
					Now       struct{ Requests, Errors, Limited int }
					Endpoints []struct{ Name string }
					KeysHit   int
				}
				Mails     *struct{}
				Attention []struct{ Kind, Name string }
				Begun     map[string]bool
			}
		}
		overview := func(a *gatetest.Actor) {
			t.Helper()
			o.Data.Requests, o.Data.Mails = nil, nil
			if err := json.Unmarshal(a.Get("/admin/v1/overview?range=1h").Want(200, "").Body, &o); err != nil {
				t.Fatal(err)
			}
		}
		overview(olivia)
		if o.Data.Requests.Now.Requests != 0 || o.Data.Begun["called"] || !o.Data.Begun["keys"] || o.Data.Begun["endpoints"] {
			t.Errorf("at first: %+v", o.Data)
		}
		for range 4 {
			sam.Get("/public/v1/me").Want(200, "")
		}
		slow.Get("/public/v1/data/contact").Want(200, "")
		slow.Get("/public/v1/data/contact").Want(429, "RATE_LIMITED")
		for deadline := time.Now().Add(20 * time.Second); o.Data.Requests.Now.Requests < 6; time.Sleep(20 * time.Millisecond) {
			if overview(olivia); time.Now().After(deadline) {
				t.Fatalf("%+v", o.Data.Requests)
			}
		}
		if r := o.Data.Requests; r.Now.Requests != 6 || r.Now.Errors != 1 || r.Now.Limited != 1 || r.KeysHit != 1 || len(r.Endpoints) != 2 || !o.Data.Begun["called"] || o.Data.Mails == nil {
			t.Errorf("%+v", o.Data)
		}
		if a := o.Data.Attention; len(a) != 1 || a[0].Kind != "limit" || a[0].Name != "test" {
			t.Errorf("%+v", a)
		}
		if overview(w.Staff("sam@acme.example")); o.Data.Requests != nil || o.Data.Mails != nil {
			t.Errorf("Sam sees %+v", o.Data)
		}
		olivia.Get("/admin/v1/overview?range=2h").Want(400, "VALIDATION")
		var u struct {
			Data struct {
				Total struct{ Requests, Limited int }
				Rows  []struct {
					Name  string
					Total struct{ Requests int }
				}
			}
		}
		for query, want := range map[string]int{"by=key": 6, "by=endpoint": 6, "by=endpoint&name=/me": 4, "by=key&name=" + slow.KeyID: 2} {
			if err := json.Unmarshal(olivia.Get("/admin/v1/usage?buckets=24&"+query).Want(200, "").Body, &u); err != nil {
				t.Fatal(err)
			}
			if u.Data.Total.Requests != want {
				t.Errorf("%s: %+v", query, u.Data)
			}
		}
		olivia.Get("/admin/v1/usage?by=user").Want(400, "VALIDATION")
		w.Staff("sam@acme.example").Get("/admin/v1/usage").Want(403, "FORBIDDEN")
	})
}
