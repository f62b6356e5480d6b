package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// LogEntry is an entry of the audit log as a list shows it. What does not apply is
// null.
type LogEntry struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	RequestID  string    `json:"requestId"`
	Method     string    `json:"method"`
	Path       string    `json:"path"` // without the query
	Endpoint   *string   `json:"endpoint"`
	Status     int       `json:"status"`
	Code       *string   `json:"code"` // of the error that was answered
	Gate       *string   `json:"gate"` // where the request was stopped
	User       *LogUser  `json:"user"`
	RealUser   *LogUser  `json:"realUser"`   // who acted as User
	Credential *string   `json:"credential"` // KEY, JWT, TOKEN, SIGNED or SESSION
	Key        *LogKey   `json:"key"`
	IP         *string   `json:"ip"`
	DurationMS float64   `json:"durationMs"`
}

// LogUser is a user of an entry. Address and name are null where the viewer may not
// see them, and where nobody knows them any more.
type LogUser struct {
	ID    string  `json:"id"`
	Email *string `json:"email"`
	Name  *string `json:"name"`
}

// LogKey is the API key of an entry; the name is null once the key is deleted.
type LogKey struct {
	ID     string  `json:"id"`
	Prefix string  `json:"prefix"`
	Name   *string `json:"name"`
}

// LogMeta is the meta of a page of entries.
type LogMeta struct {
	Count      int     `json:"count"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
	// SearchedTo is set where the time was up before the page was full: everything
	// since then was searched, and the next page goes on from there.
	SearchedTo *time.Time `json:"searchedTo"`
}

// LogDetail is an entry with its request and answer as they are stored (contract
// G7), and the gates on its way.
type LogDetail struct {
	LogEntry
	Query    *string     `json:"query"`
	Request  LogMessage  `json:"request"`
	Response LogMessage  `json:"response"`
	Reason   *string     `json:"reason"` // of a verifier that rejected
	Track    []TrackGate `json:"track"`
	// Fields are those of details.fields of the answer: what the error is about.
	Fields map[string]string `json:"fields"`
	// Message is that of the error.
	Message *string `json:"message"`
}

// LogMessage is a request or an answer. Body is the stored JSON: of a form a text,
// of a long body {"truncated": true, "bytes", "start"}, of one that does not parse
// {"unparsed": true, "bytes"}; null for none.
type LogMessage struct {
	Headers     map[string]string `json:"headers"`
	HeaderNames []string          `json:"headerNames"` // of headers whose values are not kept
	Body        any               `json:"body"`
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (a *AdminAPI) serveList(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, scope := q.filter(c.Viewer)
	f.Limit = q.pageSize()
	if err := q.err(); err != nil {
		return httpapi.Reply{}, err
	}
	if f.Before, err = a.cursors.Open("audit\x00"+scope, q.text("cursor")); err != nil {
		return httpapi.Reply{}, err
	}
	page, err := a.page(ctx, c, f)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list, err := a.show(ctx, c, page.Entries)
	meta := LogMeta{Count: len(list), HasMore: page.Next != ""}
	if meta.HasMore {
		next := a.cursors.Seal("audit\x00"+scope, page.Next)
		meta.NextCursor = &next
	}
	if !page.Searched.IsZero() {
		meta.SearchedTo = &page.Searched
	}
	return reply(list, meta, err)
}

// page returns a page of entries. It is empty where the filter names a user whom
// the viewer may not see, or who does not exist.
func (a *AdminAPI) page(ctx context.Context, c *httpapi.Authed, f Filter) (Page, error) {
	if f.User != "" && !mayAsk(c.Viewer, f.User) {
		return Page{}, nil
	}
	leave, err := a.enter(ctx, c.Viewer.Tenant())
	if err != nil {
		return Page{}, err
	}
	defer leave()
	page, err := a.store.log(c.Viewer.Tenant()).Page(ctx, f, searchFor)
	if fault.CodeOf(err) == fault.NotFound {
		return Page{}, nil
	}
	return page, err
}

// show returns entries as the viewer may see them.
func (a *AdminAPI) show(ctx context.Context, c *httpapi.Authed, entries []*Entry) ([]LogEntry, error) {
	n, err := a.names(ctx, c.Viewer.Tenant(), showsOf(c), entries)
	if err != nil {
		return nil, err
	}
	list := make([]LogEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, n.entry(e))
	}
	return list, nil
}

// entryNames are the names that entries refer to.
type entryNames struct {
	users map[string]Name
	keys  map[string]string
	shows shows
}

func (a *AdminAPI) names(ctx context.Context, t tenant.ID, s shows, entries []*Entry) (*entryNames, error) {
	var users, keys []string
	seen := map[string]bool{"": true}
	for _, e := range entries {
		for _, id := range []string{e.UserID, e.RealUserID} {
			if !seen[id] && (s.email || s.name || id == s.self) {
				users = append(users, id)
			}
			seen[id] = true
		}
		if !seen[e.KeyID] {
			keys = append(keys, e.KeyID)
		}
		seen[e.KeyID] = true
	}
	n := &entryNames{shows: s}
	var err error
	if n.users, err = a.store.log(t).Names(ctx, users); err != nil {
		return nil, err
	}
	n.keys, err = a.others.KeyNames(ctx, t, keys)
	return n, err
}

func (n *entryNames) user(id string) *LogUser {
	if id == "" {
		return nil
	}
	u := &LogUser{ID: id}
	known, self := n.users[id], id == n.shows.self
	if n.shows.email || self {
		u.Email = textOrNull(known.Email)
	}
	if n.shows.name || self {
		u.Name = textOrNull(known.Name)
	}
	return u
}

func (n *entryNames) entry(e *Entry) LogEntry {
	out := LogEntry{
		ID: e.ID, Time: e.At.UTC(), RequestID: e.RequestID, Method: e.Method, Path: e.Path, Endpoint: textOrNull(e.Endpoint), Status: e.Status,
		Code: textOrNull(e.Code), Gate: textOrNull(e.Gate), User: n.user(e.UserID), RealUser: n.user(e.RealUserID), Credential: textOrNull(e.Auth),
		IP: textOrNull(e.IP), DurationMS: float64(e.Duration.Microseconds()) / 1000,
	}
	if e.KeyID != "" || e.KeyPrefix != "" {
		out.Key = &LogKey{ID: e.KeyID, Prefix: e.KeyPrefix, Name: textOrNull(n.keys[e.KeyID])}
	}
	return out
}

var errNoEntry = fault.New(fault.NotFound, "there is no such entry in the audit log, or not any more")

func (a *AdminAPI) serveEntry(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	e, err := a.store.log(c.Viewer.Tenant()).ByID(ctx, c.Params.Get("id"))
	if err == nil && e == nil {
		err = errNoEntry
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	d, err := detail(e)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list, err := a.show(ctx, c, []*Entry{e})
	if err != nil {
		return httpapi.Reply{}, err
	}
	d.LogEntry = list[0]
	return reply(d, nil, nil)
}

// detail returns what an entry has beside LogEntry. Of an entry that was written
// before codes and gates were kept, it sets these.
func detail(e *Entry) (*LogDetail, error) {
	d := &LogDetail{Fields: map[string]string{}}
	var request struct {
		Query   string            `json:"query"`
		Headers map[string]string `json:"headers"`
		Names   []string          `json:"header_names"`
		Body    json.RawMessage   `json:"body"`
	}
	var response struct {
		Reason string          `json:"reason"`
		Body   json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal([]byte(e.Request), &request); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(e.Response), &response); err != nil {
		return nil, err
	}
	d.Query, d.Reason = textOrNull(request.Query), textOrNull(response.Reason)
	d.Request = LogMessage{Headers: request.Headers, HeaderNames: request.Names, Body: bodyOf(request.Body)}
	d.Response = LogMessage{Body: bodyOf(response.Body)}
	for _, m := range []*LogMessage{&d.Request, &d.Response} {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		if m.HeaderNames == nil {
			m.HeaderNames = []string{}
		}
	}
	d.failure(e, response.Body)
	d.Track = track(e, request.Headers["origin"] != "")
	return d, nil
}

func bodyOf(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// failure reads the error of an answer.
func (d *LogDetail) failure(e *Entry, body json.RawMessage) {
	var answer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Details struct {
				Fields map[string]json.RawMessage `json:"fields"`
			} `json:"details"`
		} `json:"error"`
	}
	if e.Status < 400 || len(body) == 0 || json.Unmarshal(body, &answer) != nil {
		return
	}
	e.Code = cmp.Or(e.Code, answer.Error.Code)
	e.Gate = cmp.Or(e.Gate, stoppedAt(e, body))
	d.Message = textOrNull(answer.Error.Message)
	for name, reason := range answer.Error.Details.Fields {
		var text string
		if json.Unmarshal(reason, &text) != nil {
			text = string(reason)
		}
		d.Fields[name] = text
	}
}
