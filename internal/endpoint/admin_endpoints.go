package endpoint

import (
	"context"
	"maps"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/user"
)

// AdminEndpointLine is a custom endpoint in a list.
type AdminEndpointLine struct {
	Slug   string      `json:"slug"`
	Target AdminTarget `json:"target"`
	Auth   string      `json:"auth"`
	// Ready is false for a webhook without a token or a secret: every call is 401.
	Ready bool `json:"ready"`
	// LastRun is the last run, null if none is kept.
	LastRun *AdminRun `json:"lastRun"`
}

// AdminEndpoint has what is to be known of a custom endpoint. Its definition is in
// the configuration.
type AdminEndpoint struct {
	AdminEndpointLine
	Method   string  `json:"method"`
	URL      string  `json:"url"`
	Reply    string  `json:"reply"`
	Verifier *string `json:"verifier"`
	// TokenPrefix is the beginning of the webhook token, null if none was made.
	TokenPrefix *string `json:"tokenPrefix"`
	// SecretSet and PreviousSet say whether there are webhook secrets.
	SecretSet   bool `json:"secretSet"`
	PreviousSet bool `json:"previousSet"`
	// RunsAs says as whom the target runs (contract X2): caller, user or system. User
	// is that user, or for system the one in whose name it runs; null for the caller.
	RunsAs string       `json:"runsAs"`
	User   *AdminPerson `json:"user"`
	// MayIssueToken says whether the viewer may make a webhook token.
	MayIssueToken bool                 `json:"mayIssueToken"`
	Inputs        []inputs.Declaration `json:"inputs"`
	Outputs       []inputs.Declaration `json:"outputs"`
	Figures       AdminFigures         `json:"figures"`
}

// AdminFigures counts an endpoint's runs of the last 24 hours.
type AdminFigures struct {
	Runs int `json:"runs"`
	// More is true when there were more: the figures are of the newest 10,000.
	More       bool        `json:"more"`
	Succeeded  int         `json:"succeeded"`
	Failed     int         `json:"failed"`
	Duplicates int         `json:"duplicates"`
	P50US      int64       `json:"p50Us"`
	P95US      int64       `json:"p95Us"`
	Hours      []AdminHour `json:"hours"` // 24, oldest first
}

// AdminHour counts the runs of one hour.
type AdminHour struct {
	At        string `json:"at"`
	Succeeded int    `json:"succeeded"`
	Failed    int    `json:"failed"`
}

// maxFigures is how many runs are counted.
const maxFigures = 10_000

// ready reports whether a caller can have what an endpoint asks for.
func ready(e *custom.Endpoint) bool {
	return e.Auth == custom.APIKey || e.Auth == custom.Token && e.TokenPrefix != "" || e.Auth == custom.Signed && e.SealedSecret != ""
}

func (s *Service) endpointLine(ctx context.Context, c *httpapi.Authed, e *custom.Endpoint) (AdminEndpointLine, error) {
	line := AdminEndpointLine{Slug: e.Slug, Target: AdminTarget{string(e.Target.Kind), e.Target.Name}, Auth: string(e.Auth), Ready: ready(e)}
	runs, _, err := s.store.runPage(ctx, c.Config.Tenant.ID, runQuery{slug: e.Slug, limit: 1})
	if err != nil || len(runs) == 0 {
		return line, err
	}
	lines, err := s.lines(ctx, c.Config.Tenant.ID, runs...)
	if err == nil {
		line.LastRun = &lines[0]
	}
	return line, err
}

// maxEndpointLines is how many endpoints a list has; the others are in the
// configuration.
const maxEndpointLines = 1_000

// adminEndpoints lists the custom endpoints by slug, each with its last run.
func (s *Service) adminEndpoints(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	catalog, err := s.catalog(ctx, c.Config)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list := []AdminEndpointLine{}
	for _, slug := range slices.Sorted(maps.Keys(catalog.Endpoints)) {
		if len(list) == maxEndpointLines {
			break
		}
		line, err := s.endpointLine(ctx, c, catalog.Endpoints[slug])
		if err != nil {
			return httpapi.Reply{}, err
		}
		list = append(list, line)
	}
	return s.replyList(c, list, len(list), "")
}

// identityOf returns as whom an endpoint's target runs when it does not run as its
// caller: a user, and whether with the rights of the system. how is caller, user or
// system.
func (c *catalog) identityOf(e *custom.Endpoint) (how string, userID user.ID) {
	context := custom.Context{Kind: custom.Caller}
	if e.Target.Kind == custom.ToComponent && c.Components[e.Target.Name] != nil || c.flows[e.Target.Name] != nil {
		context = c.context(e.Target)
	}
	userID = user.ID(e.RunAs)
	if userID == "" && e.Auth != custom.APIKey {
		userID = user.ID(e.DefinedBy)
	}
	switch {
	case context.Kind == custom.SpecificUser:
		return "user", user.ID(context.UserID)
	case context.Kind == custom.System:
		return "system", userID
	case userID != "":
		return "user", userID
	}
	return "caller", ""
}

// endpoint returns the endpoint that a request names, or NOT_FOUND.
func (s *Service) endpoint(ctx context.Context, c *httpapi.Authed) (*catalog, *custom.Endpoint, error) {
	catalog, err := s.catalog(ctx, c.Config)
	if err != nil {
		return nil, nil, err
	}
	slug := c.Params.Get("slug")
	e := catalog.Endpoints[slug]
	if e == nil {
		return nil, nil, fault.New(fault.NotFound, "there is no endpoint %q", slug)
	}
	return catalog, e, nil
}

// adminEndpoint returns the facts of one endpoint.
func (s *Service) adminEndpoint(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	catalog, e, err := s.endpoint(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	line, err := s.endpointLine(ctx, c, e)
	if err != nil {
		return httpapi.Reply{}, err
	}
	a := AdminEndpoint{
		AdminEndpointLine: line, Method: "POST", URL: endpointURL(c, e), Reply: string(e.Reply), Verifier: orNil(e.Verifier), TokenPrefix: orNil(e.TokenPrefix),
		SecretSet: e.SealedSecret != "", PreviousSet: e.SealedPrevious != "", MayIssueToken: e.Auth == custom.Token && mayIssue(c, catalog, e) == nil,
	}
	how, id := catalog.identityOf(e)
	people, err := s.store.people(ctx, c.Config.Tenant.ID, map[user.ID]bool{id: true})
	if err != nil {
		return httpapi.Reply{}, err
	}
	a.RunsAs, a.User = how, person(people[id])
	declared, outputs, err := catalog.shown(e.Target)
	if err != nil {
		return httpapi.Reply{}, err
	}
	a.Inputs, a.Outputs = append([]inputs.Declaration{}, declared...), append([]inputs.Declaration{}, outputs...)
	if a.Figures, err = s.figures(ctx, c, e.Slug); err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, a)
}

func endpointURL(c *httpapi.Authed, e *custom.Endpoint) string {
	return baseURL(c) + "/public/v1/custom/" + e.Slug
}

// shown returns the inputs and outputs that a target declares.
func (c *catalog) shown(t custom.Target) (takes, gives []inputs.Declaration, err error) {
	if takes, _, err = c.declared(t); err != nil {
		return nil, nil, err
	}
	if t.Kind == custom.ToComponent {
		return takes, c.Components[t.Name].Outputs, nil
	}
	return takes, c.flows[t.Name].outputs, nil
}

// figures counts an endpoint's runs of the last 24 hours.
func (s *Service) figures(ctx context.Context, c *httpapi.Authed, slug string) (AdminFigures, error) {
	now := s.clock.Now()
	first := now.Truncate(time.Hour).Add(-23 * time.Hour)
	list, err := s.store.figures(ctx, c.Config.Tenant.ID, slug, first, maxFigures+1)
	f := AdminFigures{Hours: make([]AdminHour, 24), More: len(list) > maxFigures}
	for i := range f.Hours {
		f.Hours[i].At = instantOf(clock.Micros(first.Add(time.Duration(i) * time.Hour)))
	}
	took := make([]int64, 0, len(list))
	for _, one := range list[:min(len(list), maxFigures)] {
		hour := &f.Hours[max(0, min(int(one.at.Sub(first)/time.Hour), len(f.Hours)-1))]
		f.Runs++
		took = append(took, one.tookUS)
		switch one.status {
		case Succeeded:
			f.Succeeded++
			hour.Succeeded++
		case Failed:
			f.Failed++
			hour.Failed++
		default:
			f.Duplicates++
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.P50US, f.P95US = took[n/2], took[n*95/100]
	}
	return f, err
}

// AdminToken is a new webhook token, which is shown this once.
type AdminToken struct {
	Token string `json:"token"`
	URL   string `json:"url"`
	// Sample is a request with the token, as one types it in a shell.
	Sample string `json:"sample"`
}

// mayIssue checks whether the viewer may make a token for an endpoint: its holder
// runs the target as the endpoint says, so they must be able to define that
// (contract A13). It returns FORBIDDEN.
func mayIssue(c *httpapi.Authed, catalog *catalog, e *custom.Endpoint) error {
	how, id := catalog.identityOf(e)
	var others []user.ID
	if id != "" {
		others = append(others, id)
	}
	return c.LastingCheck(func(w access.Viewer) error { return MayDefine(w, others, how == "system") })
}

// adminToken makes a new webhook token. The old one stops at once on every node
// (contract W1).
func (s *Service) adminToken(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	catalog, e, err := s.endpoint(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := mayIssue(c, catalog, e); err != nil {
		return httpapi.Reply{}, err
	}
	token, err := s.store.newToken(ctx, s.clock, c.Session.Actor(), c.Config.Tenant.ID, e.Slug)
	if err != nil {
		return httpapi.Reply{}, err
	}
	s.dir.Forget()
	url := endpointURL(c, e)
	return reply(c, AdminToken{
		Token: token.Reveal(), URL: url,
		Sample: "curl -s -X POST " + url + " \\\n  -H \"X-Webhook-Token: " + token.Reveal() + "\" \\\n  -H \"Content-Type: application/json\" \\\n  -d '" + catalog.sample(e.Target) + "'",
	})
}

// sample returns a body that has a value for each declared input.
func (c *catalog) sample(t custom.Target) string {
	takes, _, err := c.shown(t)
	if err != nil {
		return "{}"
	}
	text := []byte{'{'}
	for i, d := range takes {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, '"')
		text = append(append(text, d.Name...), `": `...) // a declared name is letters, digits, _ and -
		switch d.Type {
		case inputs.Number:
			text = append(text, '1')
		case inputs.Boolean:
			text = append(text, "true"...)
		case inputs.JSON:
			text = append(text, "{}"...)
		default:
			text = append(text, `"text"`...)
		}
	}
	return string(append(text, '}'))
}
