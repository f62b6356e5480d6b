package prove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// stormClientsFile names the file that says what the clients of a storm are to do: a process
// that has it set is them.
const stormClientsFile = "GATEHOUSE_PROVE_STORM_CLIENTS"

// asJSON is a body's type.
const asJSON = "application/json"

// stormClients are the clients of one tenant that cause as much load as they can. They are
// a process of their own, which gives way to all others: a storm's clients have machines of
// their own, and what they need of this one's two cores to send bodies of 9 MiB would
// otherwise count as what the server makes another tenant wait.
type stormClients struct {
	Public  string        // the server's address
	Token   string        // of the owner
	Hook    string        // of the webhook
	Large   []string      // ids of large records
	Changed int           // how many of them one batch may change
	Parts   []string      // the kinds of load
	Lasts   time.Duration // how long

	http *http.Client

	mu    sync.Mutex
	after stormOutcome
}

// stormOutcome is the result of a storm for its clients.
type stormOutcome struct {
	Answers map[string]int // by kind of load and status
	Faults  []string
}

// stormParts are the kinds of load. apply is not one of the clients'.
var stormParts = map[string]func(*stormClients, context.Context){
	"runs":    (*stormClients).runs,
	"hogs":    (*stormClients).hogs,
	"lists":   (*stormClients).lists,
	"logins":  (*stormClients).logins,
	"bodies":  (*stormClients).bodies,
	"batches": (*stormClients).batches,
}

// apart runs the clients as a process and returns their result.
func (s *stormClients) apart(t testing.TB, file string) (after stormOutcome, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return after, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return after, err
	}
	cmd := exec.CommandContext(t.Context(), "nice", "-n", "19", os.Args[0])
	cmd.Env = append(os.Environ(), stormClientsFile+"="+file)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return after, fmt.Errorf("%w: %s%s", err, out, complaints.String())
	}
	err = json.Unmarshal(out, &after)
	return after, err
}

// beStormClients is the process of the clients.
func beStormClients(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := stormClients{after: stormOutcome{Answers: map[string]int{}}}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	s.http = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	ctx, cancel := context.WithTimeout(context.Background(), s.Lasts)
	defer cancel()
	var all sync.WaitGroup
	for _, name := range s.Parts {
		rage, ok := stormParts[name]
		if !ok {
			return errors.New("no part of the storm is called " + name)
		}
		all.Go(func() { rage(&s, ctx) })
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(s.after)
}

// crowd starts clients that each send one request after the other. kind is a body's type.
func (s *stormClients) crowd(ctx context.Context, part string, clients int, token, method string, request func(id int) (path, kind, body string)) {
	var all sync.WaitGroup
	for id := range clients {
		all.Go(func() {
			path, kind, body := request(id)
			for ctx.Err() == nil {
				status, err := s.attack(ctx, token, method, path, kind, body)
				if ctx.Err() != nil {
					return
				}
				s.mu.Lock()
				if err != nil {
					s.after.Faults = append(s.after.Faults, fmt.Sprintf("%s: the server hung up: %v", part, err))
				} else {
					s.after.Answers[fmt.Sprintf("%s_answered_%d", part, status)]++
				}
				s.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// attack sends one request, and reads and drops the answer.
func (s *stormClients) attack(ctx context.Context, token, method, path, kind, body string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.Public+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Host = host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	res, err := s.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func (s *stormClients) runs(ctx context.Context) {
	thirty := "[" + strings.TrimSuffix(strings.Repeat("1,", 30), ",") + "]"
	s.crowd(ctx, "runs", 16, s.Token, "POST", func(id int) (path, kind, body string) {
		if id%2 == 0 {
			return "/public/v1/custom/many", asJSON, "{}"
		}
		return "/public/v1/custom/flow", asJSON, `{"outer":` + thirty + `,"inner":` + thirty + `}`
	})
}

func (s *stormClients) hogs(ctx context.Context) {
	s.crowd(ctx, "hogs", 8, s.Token, "POST", func(id int) (path, kind, body string) {
		return "/public/v1/custom/" + []string{"hungry", "busy"}[id%2], asJSON, "{}"
	})
}

func (s *stormClients) lists(ctx context.Context) {
	s.crowd(ctx, "lists", 8, s.Token, "GET", func(int) (path, kind, body string) { return "/public/v1/data/large?limit=200", "", "" })
}

func (s *stormClients) logins(ctx context.Context) {
	s.crowd(ctx, "logins", 16, "", "POST", func(id int) (path, kind, body string) {
		return auth + "login", asJSON, members("email", eva, "password", []string{"the password of eva", "a wrong password"}[id%2])
	})
}

// bodies sends forms and JSON of 9 MiB, with as many fields or parts as there may be.
func (s *stormClients) bodies(ctx context.Context) {
	var fields, parts, members strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&fields, "&f%d=%s", n, strings.Repeat("%41", 300))
		fmt.Fprintf(&members, `,"f%d":"%s"`, n, strings.Repeat("A", 900))
	}
	for n := range 1000 {
		fmt.Fprintf(&parts, "--x\r\nContent-Disposition: form-data; name=p%d\r\n\r\n%s\r\n", n, strings.Repeat("A", 9000))
	}
	bodies := [][2]string{
		{"application/x-www-form-urlencoded", fields.String()[1:]},
		{"multipart/form-data; boundary=x", parts.String() + "--x--\r\n"},
		{asJSON, "{" + members.String()[1:] + "}"},
	}
	s.crowd(ctx, "bodies", 18, s.Hook, "POST", func(id int) (path, kind, body string) {
		one := bodies[id%len(bodies)]
		return "/public/v1/custom/form", one[0], one[1]
	})
}

// batches changes large records: all 200, which is refused for their size, or as many as may be.
func (s *stormClients) batches(ctx context.Context) {
	s.crowd(ctx, "batches", 16, s.Token, "POST", func(id int) (path, kind, body string) {
		ids := s.Large
		if id%2 == 1 {
			ids = ids[:s.Changed]
		}
		items := make([]string, len(ids))
		for i, one := range ids {
			items[i] = fmt.Sprintf(`{"op":"update","id":%q,"fields":{"n":%d}}`, one, id)
		}
		return "/public/v1/data/large/batch", asJSON, `{"items":[` + strings.Join(items, ",") + `]}`
	})
}
