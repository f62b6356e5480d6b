package prove

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"
)

const adminAPI = "/admin/v1/"

// byStaff signs the owner in to the console, with a second factor: once by a recovery code.
func (s *vault) byStaff() {
	s.w.t.Helper()
	s.staff(401, "POST", "session", members("email", owner, "password", s.password("wrong password of the owner")))
	signIn := func() { s.staff(200, "POST", "session", members("email", owner, "password", s.w.passwords[owner])) }
	signIn()
	key := s.keep("key of the second factor", s.staff(200, "POST", "account/factor", members("currentPassword", s.w.passwords[owner]))["secret"].(string))
	s.staff(401, "POST", "account/factor/confirm", members("code", "000000"))
	code, err := totp.GenerateCode(key, time.Now())
	if err != nil {
		s.w.t.Fatal(err)
	}
	made := s.staff(200, "POST", "account/factor/confirm", members("code", code))
	var recovery []string
	for _, one := range made["recoveryCodes"].([]any) {
		recovery = append(recovery, one.(string))
		s.known[one.(string)], s.known[strings.ReplaceAll(one.(string), "-", "")] = "recovery code", "recovery code"
	}
	signIn()
	s.staff(401, "POST", "session/code", members("recoveryCode", "not-a-code-of-hers"))
	s.staff(200, "POST", "session/code", members("recoveryCode", recovery[0]))
}

// staff sends a request as the owner's browser does, and takes the session that the answer gives it.
func (s *vault) staff(status int, method, path, body string) map[string]any {
	s.w.t.Helper()
	a, err := s.v.send(method, adminAPI+path, body, "Origin", "http://"+host, "Cookie", s.cookie)
	if err != nil || a.status != status {
		s.w.t.Fatal(a, err)
	}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.MaxAge > 0 {
			s.cookie = c.Name + "=" + s.keep("session of the console", c.Value)
		}
	}
	return dataOf[map[string]any](s, a)
}

func dataOf[T any](s *vault, a *answer) T {
	s.w.t.Helper()
	var env struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(a.body, &env); err != nil {
		s.w.t.Fatal(a, err)
	}
	return env.Data
}

// adminQueries are the parameters of the reads that need some.
var adminQueries = map[string]string{
	"count": "?entity=contact", "labels": "?entity=contact", "reach": "?entity=contact&share_with=internal&owned_by_role=sales",
	"why": "?entity=contact", "data/contact/export": "?format=ndjson", "audit": "?limit=200", "runs": "?limit=200", "events": "?limit=200", "history": "?limit=200",
}

// depth says how late a read is asked for: a list before its objects, and why a user sees one at the end.
func depth(path string) int {
	if path == "why" {
		return 9
	}
	return strings.Count(path, "/")
}

// shown returns what the console shows the owner, who may see everything: the answers of all reads of its API, those of
// single objects for each of the first page. /metrics goes with them.
func (s *vault) shown() map[string]place {
	s.w.t.Helper()
	golden, err := os.ReadFile("../server/testdata/admin.golden")
	if err != nil {
		s.w.t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(golden)) {
		if pattern, is := strings.CutPrefix(strings.TrimSpace(line), "GET "+adminAPI); is && pattern != "audit/tail" { // which shows what audit does
			patterns = append(patterns, pattern)
		}
	}
	slices.SortFunc(patterns, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	all := map[string]place{}
	for _, pattern := range patterns {
		paths := s.paths(all, pattern)
		if len(paths) == 0 {
			s.p.fail("%s: nothing to ask for", pattern)
		}
		for _, path := range paths {
			query := adminQueries[path]
			if path == "why" {
				query += "&user=" + s.member(all, "users", "id")[0] + "&id=" + s.member(all, "data/contact", "id")[0]
			}
			a, err := s.v.send("GET", adminAPI+path+query, "", "Cookie", s.cookie)
			if err != nil || a.status != http.StatusOK {
				s.p.fail("%s: %v %v", path, a, err)
				continue
			}
			all[path] = place{content: a.body}
			if pattern == "events/{id}" { // it shows a failed delivery as it came (contract X10)
				event := dataOf[map[string]any](s, a)
				if delivery, ok := event["delivery"].(map[string]any); ok {
					delete(delivery, "inputs")
				}
				rest, _ := json.Marshal(event) // what was JSON can be written as such
				all[path] = place{content: rest}
			}
		}
	}
	for path, has := range map[string]string{
		"audit": auth + "login", "runs": "keyed", "events": "signed", "users": "anna@customer.example", "keys": "svc_api_", "history": "webhook_secret",
		"config/manifest": "PAYMENT_KEY", "endpoints": "token", "sessions": owner, "data/contact/export": "Anna's", "config/logic_component/pay": "PAYMENT_KEY",
	} {
		all[path] = place{all[path].content, []string{has}}
	}
	metrics, err := exchange(opsClient, s.request(s.n.ops+"/metrics"))
	if err != nil {
		s.w.t.Fatal(err)
	}
	all["/metrics"] = place{metrics.body, []string{"gatehouse_runs_total"}}
	return all
}

func (s *vault) request(url string) *http.Request {
	s.w.t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return r
}

// paths returns the paths of a pattern, by what the answers so far have.
func (s *vault) paths(answers map[string]place, pattern string) []string {
	list := []string{""}
	for _, segment := range strings.Split(pattern, "/") {
		var longer []string
		for _, at := range list {
			values := []string{segment}
			switch name, is := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{"); {
			case name == "entity":
				values = []string{"contact"}
			case name == "kind":
				values = s.member(answers, "config/kinds", name)
			case is:
				values = s.member(answers, at, name)
			}
			for _, v := range values {
				longer = append(longer, strings.TrimPrefix(at+"/"+v, "/"))
			}
		}
		list = longer
	}
	return list
}

// member returns a member of each object of a list that was answered, as it stands in a path.
func (s *vault) member(answers map[string]place, path, name string) (values []string) {
	s.w.t.Helper()
	at, ok := answers[path]
	if !ok {
		return nil
	}
	for _, object := range dataOf[[]map[string]any](s, &answer{body: at.content}) {
		text, ok := object[name].(string)
		if !ok {
			s.w.t.Fatalf("%s: no %q in %v", path, name, object)
		}
		values = append(values, cmp.Or(url.PathEscape(text), "-")) // what there is one of has no name
	}
	return values
}
