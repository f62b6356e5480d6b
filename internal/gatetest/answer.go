package gatetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Answer is the answer to a call.
type Answer struct {
	T      testing.TB
	Call   string // the method and path that it answers
	Status int
	Header http.Header
	Body   []byte
}

type envelope struct {
	Data  json.RawMessage `json:"data"`
	Meta  json.RawMessage `json:"meta"`
	Error *struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	} `json:"error"`
}

func (a *Answer) envelope() envelope {
	a.T.Helper()
	var e envelope
	if err := json.Unmarshal(a.Body, &e); err != nil {
		a.T.Fatalf("%s: %d: not the envelope: %q", a.Call, a.Status, a.Body)
	}
	return e
}

// Want fails the test unless the answer has the status and, for an error, the
// code; code is "" for a success.
func (a *Answer) Want(status int, code string) *Answer {
	a.T.Helper()
	if got := a.Code(); a.Status != status || got != code {
		a.T.Fatalf("%s: got %d %s, want %d %s: %s", a.Call, a.Status, got, status, code, a.Body)
	}
	return a
}

// Code returns the error's code, "" for a success.
func (a *Answer) Code() string {
	a.T.Helper()
	if len(a.Body) == 0 {
		return ""
	}
	if e := a.envelope(); e.Error != nil {
		return e.Error.Code
	}
	return ""
}

// Fields returns the names in details.fields, sorted.
func (a *Answer) Fields() []string {
	a.T.Helper()
	e := a.envelope()
	if e.Error == nil {
		return nil
	}
	fields, _ := e.Error.Details["fields"].(map[string]any)
	var names []string
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Record returns the data of the answer as one object.
func (a *Answer) Record() map[string]any {
	a.T.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.envelope().Data, &m); err != nil {
		a.T.Fatalf("%s: data is no object: %s", a.Call, a.Body)
	}
	return m
}

// Records returns the data of the answer as a list.
func (a *Answer) Records() []map[string]any {
	a.T.Helper()
	var m []map[string]any
	if err := json.Unmarshal(a.envelope().Data, &m); err != nil {
		a.T.Fatalf("%s: data is no list: %s", a.Call, a.Body)
	}
	return m
}

// Member returns the text of one member of the answer's record, as it was sent.
func (a *Answer) Member(name string) string {
	a.T.Helper()
	var m map[string]json.RawMessage
	a.Data(&m)
	return string(m[name])
}

// ID returns the id of the answer's record.
func (a *Answer) ID() string {
	a.T.Helper()
	id, _ := a.Record()["id"].(string)
	return id
}

// Meta returns the meta of a list.
func (a *Answer) Meta() (m struct {
	Count      int     `json:"count"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
},
) {
	a.T.Helper()
	if err := json.Unmarshal(a.envelope().Meta, &m); err != nil {
		a.T.Fatalf("%s: meta: %s", a.Call, a.Body)
	}
	return m
}

// Buffer collects what a server logs.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// Contains reports whether the log holds a text anywhere.
func (b *Buffer) Contains(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Contains(b.b.Bytes(), []byte(text))
}

// explain writes the last events that are no requests to the log of a failed test: an overload's
// cause, for one, stands nowhere else.
func (b *Buffer) explain(t testing.TB) {
	const most = 20
	var events []string
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.b.String()) {
		if !strings.Contains(line, `"event":"public_api.request"`) {
			events = append(events, line)
		}
	}
	for _, e := range events[max(0, len(events)-most):] {
		t.Logf("log: %.1000s", e)
	}
}

// Lines returns the log's lines, each one JSON object.
func (b *Buffer) Lines(t testing.TB) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []map[string]any
	for line := range strings.Lines(b.b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line is no JSON object: %q", line)
		}
		list = append(list, m)
	}
	return list
}

// Data reads the data of the answer into v, a pointer; what v does not name is
// left out.
func (a *Answer) Data(v any) {
	a.T.Helper()
	if err := json.Unmarshal(a.envelope().Data, v); err != nil {
		a.T.Fatalf("%s: %v: %s", a.Call, err, a.Body)
	}
}
