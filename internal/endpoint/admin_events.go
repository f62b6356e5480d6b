package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// AdminEvent is an event of a webhook in a list: a delivery that was processed, or
// one that failed and was not processed since. A provider that sends a failed
// delivery again makes another event.
type AdminEvent struct {
	ID         string  `json:"id"`
	Endpoint   string  `json:"endpoint"`
	Auth       string  `json:"auth"` // token or signed
	Kind       *string `json:"kind"` // the provider's; null in token mode
	ReceivedAt string  `json:"receivedAt"`
	Status     string  `json:"status"` // processed or failed
	// Run is the last run, null when it is not kept any more.
	Run *AdminRun `json:"run"`
	// Repeats is how often the delivery came again after it was processed, of the
	// last 30 days, and LastRepeatAt when it last did.
	Repeats      int64   `json:"repeats"`
	LastRepeatAt *string `json:"lastRepeatAt"`
}

// AdminEventDetail is an event with all that is kept of it.
type AdminEventDetail struct {
	AdminEvent
	// Runs are all kept runs of the event, newest first.
	Runs []AdminRun `json:"runs"`
	// Delivery is what was delivered, kept of failed deliveries only; null for none.
	Delivery *AdminDelivery `json:"delivery"`
	// Retriable says whether the delivery can be run again, and WhyNot why not.
	Retriable bool   `json:"retriable"`
	WhyNot    string `json:"whyNot"`
}

// AdminDelivery is what is kept of a failed delivery.
type AdminDelivery struct {
	// ProviderID is the provider's id of the event, "" in token mode.
	ProviderID string `json:"providerId"`
	// Inputs is the object that the target got; null when it is larger than 256 KiB.
	Inputs json.RawMessage `json:"inputs"`
	Bytes  int             `json:"bytes"` // the size of inputs
}

// maxShownInputs is the size of the largest inputs that are shown.
const maxShownInputs = 256 << 10

func eventOf(e *deliveredEvent, run *AdminRun) AdminEvent {
	a := AdminEvent{
		ID: e.ID, Endpoint: e.Slug, Auth: string(e.Auth), Kind: orNil(e.Kind), ReceivedAt: instantOf(e.ReceivedAt), Status: Unprocessed, Run: run,
		Repeats: e.Repeats.times,
	}
	if e.Processed {
		a.Status = Processed
	}
	if e.Repeats.times > 0 {
		last := instantOf(e.Repeats.last)
		a.LastRepeatAt = &last
	}
	return a
}

// adminEvents lists events, newest first. The parameters endpoint, kind and status
// filter it, since and until bound it in time. key finds one event by the
// provider's id or the Idempotency-Key: of these only hashes are kept.
func (s *Service) adminEvents(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	of := eventQuery{
		slug: q.values.Get("endpoint"), kind: q.values.Get("kind"), status: q.oneOf("status", Processed, Unprocessed), bounds: s.bounds(c, q), limit: q.limit(),
	}
	if err := q.problem(); err != nil {
		return httpapi.Reply{}, err
	}
	if key := q.values.Get("key"); key != "" {
		if of.id, err = s.eventIDByKey(ctx, c, of.slug, key); err != nil {
			return httpapi.Reply{}, err
		}
		if of.id == "" {
			return s.replyList(c, []AdminEvent{}, 0, "")
		}
	}
	page, next, err := s.store.eventPage(ctx, c.Config.Tenant.ID, of)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list, err := s.eventLines(ctx, c.Config.Tenant.ID, page)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return s.replyList(c, list, len(list), next)
}

// eventIDByKey returns the id of the event that a provider's id or an
// Idempotency-Key belongs to, at one endpoint or at any; "" for none.
func (s *Service) eventIDByKey(ctx context.Context, c *httpapi.Authed, slug, key string) (string, error) {
	catalog, err := s.catalog(ctx, c.Config)
	if err != nil {
		return "", err
	}
	slugs := slices.Sorted(maps.Keys(catalog.Endpoints))
	if slug != "" {
		slugs = []string{slug}
	}
	return s.store.eventByKey(ctx, c.Config.Tenant.ID, slugs, []string{providerKeyHash(key), idempotencyKeyHash(key)})
}

func (s *Service) eventLines(ctx context.Context, tenantID tenant.ID, page []*deliveredEvent) ([]AdminEvent, error) {
	var runs []*Run
	for _, e := range page {
		if e.Run != nil {
			runs = append(runs, e.Run)
		}
	}
	lines, err := s.lines(ctx, tenantID, runs...)
	if err != nil {
		return nil, err
	}
	byID := map[string]*AdminRun{}
	for i := range lines {
		byID[lines[i].ID] = &lines[i]
	}
	list := make([]AdminEvent, len(page))
	for i, e := range page {
		var run *AdminRun
		if e.Run != nil {
			run = byID[e.Run.ID]
		}
		list[i] = eventOf(e, run)
	}
	return list, nil
}

// event returns the event with an id, or NOT_FOUND.
func (s *Service) event(ctx context.Context, tenantID tenant.ID, id string) (*deliveredEvent, error) {
	page, _, err := s.store.eventPage(ctx, tenantID, eventQuery{id: id, limit: 1})
	if err == nil && len(page) == 0 {
		err = fault.New(fault.NotFound, "there is no event %q", id)
	}
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// maxEventRuns is how many runs of one event are shown.
const maxEventRuns = 50

// adminEvent returns one event with its runs and, if it failed, what was delivered.
func (s *Service) adminEvent(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	tenantID := c.Config.Tenant.ID
	e, err := s.event(ctx, tenantID, c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	lines, err := s.eventLines(ctx, tenantID, []*deliveredEvent{e})
	if err != nil {
		return httpapi.Reply{}, err
	}
	runs, _, err := s.store.runPage(ctx, tenantID, runQuery{eventID: e.ID, limit: maxEventRuns})
	if err != nil {
		return httpapi.Reply{}, err
	}
	d := AdminEventDetail{AdminEvent: lines[0]}
	if d.Runs, err = s.lines(ctx, tenantID, runs...); err != nil {
		return httpapi.Reply{}, err
	}
	d.Delivery, d.WhyNot, err = s.delivered(ctx, c, e)
	d.Retriable = err == nil && d.WhyNot == ""
	if err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, d)
}

// delivered returns what is kept of an event's failed delivery, and why it cannot
// be run again: "" for one that can.
func (s *Service) delivered(ctx context.Context, c *httpapi.Authed, e *deliveredEvent) (*AdminDelivery, string, error) {
	if e.Run == nil || e.Run.Status != Failed {
		return nil, "it was processed", nil
	}
	_, d, err := s.failedDelivery(ctx, c.Config.Tenant.ID, e.Run.ID)
	switch {
	case errors.Is(err, secret.ErrOpen):
		return nil, "it was stored under another master key", nil
	case fault.CodeOf(err) == fault.Conflict:
		return nil, "what was delivered is not kept", nil
	case err != nil:
		return nil, "", err
	}
	given := d.Inputs.JSON()
	shown := &AdminDelivery{ProviderID: storedKind(d.Event.ProviderID), Bytes: len(given)}
	if len(given) <= maxShownInputs {
		shown.Inputs = json.RawMessage(storedKind(string(given)))
	}
	catalog, err := s.catalog(ctx, c.Config)
	switch {
	case err != nil:
		return nil, "", err
	case e.Processed:
		return shown, "it was processed", nil
	case catalog.Endpoints[e.Slug] == nil:
		return shown, "its endpoint is gone", nil
	case d.Event.KeyHash == "":
		return shown, "", nil
	}
	first, err := s.store.seen(ctx, c.Config.Tenant.ID, e.Slug, d.Event.KeyHash)
	if first != "" {
		return shown, "the provider sent it again, and it was processed as event " + first, err
	}
	return shown, "", err
}

// AdminRetry is the result of running a failed delivery again.
type AdminRetry struct {
	// Status is processed; failed, when it failed again; or duplicate, when it had
	// been processed since.
	Status string      `json:"status"`
	Error  *AdminError `json:"error"`
}

// adminRetry runs the failed delivery of an event again, as `run retry` does. It
// answers CONFLICT for an event that was processed or whose delivery is not kept.
func (s *Service) adminRetry(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.tries.take("retry/"+string(c.Config.Tenant.ID)+"/"+string(c.Session.UserID), triesPerMinute); err != nil {
		return httpapi.Reply{}, err
	}
	e, err := s.event(ctx, c.Config.Tenant.ID, c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	if e.Processed || e.Run == nil {
		return httpapi.Reply{}, fault.New(fault.Conflict, "event %s was processed: there is nothing to run again", e.ID)
	}
	out, already, err := s.Retry(ctx, c.Config, e.Run.ID)
	if errors.Is(err, secret.ErrOpen) {
		err = fault.New(fault.Conflict, "the delivery was stored under another master key and cannot be read")
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	answer := AdminRetry{Status: Processed}
	switch {
	case already:
		answer.Status = Duplicate
	case out.Err != nil:
		answer.Status, answer.Error = Unprocessed, errorOf(Describe(out.Err))
		answer.Error.Status, answer.Error.Details = statusOf(out.Err)
	}
	return reply(c, answer)
}
