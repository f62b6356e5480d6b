package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheAuditLogIsAskedForOneRequestAndSinceWhen(t *testing.T) {
	each(t, func(x *cli) {
		url, stop := x.served()
		var ids []string
		for range 3 {
			r, err := http.NewRequestWithContext(x.ctx(), http.MethodGet, url+"/public/v1/me", nil)
			if err != nil {
				x.t.Fatal(err)
			}
			r.Host = "acme.localhost"
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				x.t.Fatal(err)
			}
			_ = res.Body.Close() // the body is not needed
			ids = append(ids, res.Header.Get("X-Request-Id"))
		}
		stop() // writes the entries that are still buffered
		for _, id := range ids {
			if list := x.lines("audit", "--tenant", "acme", "--request-id", strings.ToUpper(id)); len(list) != 1 {
				x.t.Errorf("an id in capital letters: %v", list)
			}
			if list := x.lines("audit", "--tenant", "acme", "--request-id", id); len(list) != 1 || list[0]["request_id"] != id {
				x.t.Errorf("of request %s: %v", id, list)
			}
		}
		for since, want := range map[string]int{"1h": 3, "2020-01-31": 3, "2020-01-31T10:00:00+02:00": 3, "0s": 0, "2999-01-01": 0} {
			if list := x.lines("audit", "--tenant", "acme", "--since", since); len(list) != want {
				x.t.Errorf("since %s: %d entries, want %d", since, len(list), want)
			}
		}
		x.fails(2, "expected a duration such as 90m", "audit", "--tenant", "acme", "--since", "yesterday")
		x.fails(2, "expected a duration such as 90m", "audit", "--tenant", "acme", "--since", "-1h")
		x.fails(1, "expected the id that the answer's header X-Request-Id has", "audit", "--tenant", "acme", "--request-id", "x")
	})
}
