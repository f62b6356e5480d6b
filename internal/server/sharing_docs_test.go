package server_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// TestThePageAboutSharingIsRight applies every manifest of docs/sharing.md and runs
// the lines below it, each of which says what a user does, or may not do.
func TestThePageAboutSharingIsRight(t *testing.T) {
	page, err := os.ReadFile("../../docs/sharing.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []*sharingSection
	for part := range strings.SplitSeq(string(page), "\n## ") {
		if s := readSharingSection(part); s != nil {
			sections = append(sections, s)
		}
	}
	if len(sections) < 12 {
		t.Fatalf("only %d sections with a manifest and steps were found", len(sections))
	}
	for _, s := range sections {
		t.Run(s.title, func(t *testing.T) {
			t.Parallel()
			gatetest.Each(t, func(t *testing.T, w *gatetest.World) { s.run(t, w) })
		})
	}
}

type sharingSection struct {
	title, manifest string
	steps           []string
}

// readSharingSection returns nil for a part of the page without a manifest.
func readSharingSection(part string) *sharingSection {
	s := &sharingSection{}
	s.title, part, _ = strings.Cut(part, "\n")
	_, part, found := strings.Cut(part, "```yaml\n")
	if !found {
		return nil
	}
	s.manifest, part, _ = strings.Cut(part, "```")
	_, part, _ = strings.Cut(part, "```steps\n")
	part, _, _ = strings.Cut(part, "```")
	s.steps = strings.Split(strings.TrimSpace(part), "\n")
	return s
}

// sharingWorld is what the steps of a section work on: keys by a user's short name,
// paths of records by theirs.
type sharingWorld struct {
	*gatetest.World
	emails map[string]string
	keys   map[string]*gatetest.Actor
	paths  map[string]string
}

var (
	shortNames   = regexp.MustCompile(`email: (([a-z]+)@[a-z.]+)`)
	placeholders = regexp.MustCompile(`\{\{(user )?([a-z]+)\}\}`)
)

func (s *sharingSection) run(t *testing.T, w *gatetest.World) {
	w.Apply(s.manifest)
	x := &sharingWorld{World: w, emails: map[string]string{}, keys: map[string]*gatetest.Actor{}, paths: map[string]string{}}
	for _, m := range shortNames.FindAllStringSubmatch(s.manifest, -1) {
		x.emails[m[2]], x.keys[m[2]] = m[1], w.Key(m[1])
	}
	for _, step := range s.steps {
		if problem := x.step(step); problem != "" {
			t.Fatalf("%s\n%s", step, problem)
		}
	}
}

// step runs one line and returns what is not as it says.
func (x *sharingWorld) step(line string) string {
	words, body, hasBody := strings.Cut(line, " {")
	if hasBody {
		body = placeholders.ReplaceAllStringFunc("{"+body, func(text string) string {
			m := placeholders.FindStringSubmatch(text)
			if m[1] != "" {
				return x.UserID("acme", x.emails[m[2]])
			}
			path := x.paths[m[2]]
			return path[strings.LastIndexByte(path, '/')+1:]
		})
	}
	word := strings.Fields(words)
	who := x.keys[word[0]]
	if who == nil {
		return "nobody has that name"
	}
	const data = "/public/v1/data/"
	last := word[len(word)-1]
	switch verb := strings.Join(word[1:len(word)-1], " "); verb {
	case "sees":
		return expectStatus(who.Get(x.paths[last]), 200)
	case "does not see":
		return expectStatus(who.Get(x.paths[last]), 404)
	case "changes":
		return expectStatus(who.Patch(x.paths[last], body), 200)
	case "may not change":
		return expectStatus(who.Patch(x.paths[last], body), 403)
	case "shares":
		return expectStatus(who.Post(x.paths[last]+"/shares", body), 200, 201)
	case "unshares":
		return expectStatus(who.Do("DELETE", x.paths[last]+"/shares", body), 200)
	case "sets":
		return expectStatus(who.Patch(data+"user/"+x.UserID("acme", x.emails[last]), body), 200)
	case "may not set":
		return expectStatus(who.Patch(data+"user/"+x.UserID("acme", x.emails[last]), body), 400, 403)
	case "may not create":
		return expectStatus(who.Post(data+last, body), 400, 403)
	default:
		return x.other(who, verb, last, body)
	}
}

// other runs a line whose verb has an object of its own: "creates contact ada",
// "sees ada without margin".
func (x *sharingWorld) other(who *gatetest.Actor, verb, last, body string) string {
	const data = "/public/v1/data/"
	word := strings.Fields(verb)
	switch {
	case len(word) == 2 && word[0] == "creates":
		answer := who.Post(data+word[1], body)
		if problem := expectStatus(answer, 201); problem != "" {
			return problem
		}
		x.paths[last] = data + word[1] + "/" + answer.ID()
		return ""
	case len(word) == 3 && word[0] == "sees" && (word[2] == "with" || word[2] == "without"):
		answer := who.Get(x.paths[word[1]])
		if problem := expectStatus(answer, 200); problem != "" {
			return problem
		}
		if _, has := answer.Record()[last]; has != (word[2] == "with") {
			return "it answered " + string(must(json.Marshal(answer.Record())))
		}
		return ""
	}
	return "no step begins like this"
}

func expectStatus(answer *gatetest.Answer, want ...int) string {
	for _, status := range want {
		if answer.Status == status {
			return ""
		}
	}
	return "it answered " + string(answer.Body)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
