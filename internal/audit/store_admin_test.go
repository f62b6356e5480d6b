package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/user"
)

// fillKinds records n events of three days that differ in everything a filter can
// ask for, in many blocks, some of which overlap. It returns them newest first.
func fillKinds(t *testing.T, d *db.DB, n int) []*Event {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 9))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var events []*Event
	for i := range n {
		ev := entry("acme", 0)
		ev.Start = noon.AddDate(0, 0, 3*i/n).Add(time.Duration(i) * 250 * time.Millisecond)
		ev.RequestID = clock.NewID(ev.Start)
		ev.Endpoint = pick("/data/contact", "/data/account", "/me", "/custom/a", "")
		ev.Path = "/public/v1" + ev.Endpoint + "/" + pick("one", "Two", "three")
		ev.UserID = user.ID(pick("ana", "ben", ""))
		ev.APIKeyID = pick("k1", "k2", "")
		ev.Method, ev.IP = pick("GET", "PATCH"), pick("192.0.2.1", "192.0.2.2")
		ev.Auth = []credential.Kind{credential.APIKey, credential.AccessToken, credential.None}[random.IntN(3)]
		ev.ResponseBody, ev.Rendered = []byte(`{"data":1}`), true
		ev.Status = []int{200, 200, 201, 302, 404, 429, 500}[random.IntN(7)]
		events = append(events, ev)
	}
	for _, part := range [][]*Event{events[:n/3], events[n/3:]} {
		r := NewRecorder(d, clock.System(), Options{})
		for i, j := range random.Perm(len(part)) {
			r.Record(part[j])
			if i%40 == 0 {
				r.wait(t)
			}
		}
		closeRecorder(t, r)
	}
	slices.Reverse(events)
	return events
}

// wait returns when everything recorded is written.
func (r *Recorder) wait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); r.Stats().Queued > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("entries are not written")
		}
	}
}

var pageFilters = map[string]struct {
	filter Filter
	wants  func(*Event) bool
}{
	"all":       {Filter{}, func(*Event) bool { return true }},
	"user":      {Filter{UserID: "ana"}, func(e *Event) bool { return e.UserID == "ana" }},
	"key":       {Filter{KeyID: "k2"}, func(e *Event) bool { return e.APIKeyID == "k2" }},
	"errors":    {Filter{ErrorsOnly: true}, func(e *Event) bool { return e.Status >= 400 }},
	"4xx":       {Filter{Class: "4xx"}, func(e *Event) bool { return e.Status/100 == 4 }},
	"5xx":       {Filter{Class: "5xx"}, func(e *Event) bool { return e.Status >= 500 }},
	"2xx":       {Filter{Class: "2xx"}, func(e *Event) bool { return e.Status < 400 }},
	"429":       {Filter{Status: 429}, func(e *Event) bool { return e.Status == 429 }},
	"302":       {Filter{Status: 302}, func(e *Event) bool { return e.Status == 302 }},
	"jwt":       {Filter{Auth: "JWT"}, func(e *Event) bool { return e.Auth == credential.AccessToken }},
	"nobody":    {Filter{Auth: "none"}, func(e *Event) bool { return e.Auth == credential.None }},
	"method":    {Filter{Method: "PATCH"}, func(e *Event) bool { return e.Method == "PATCH" }},
	"ip":        {Filter{IP: "192.0.2.2"}, func(e *Event) bool { return e.IP == "192.0.2.2" }},
	"path":      {Filter{Path: "/two"}, func(e *Event) bool { return strings.HasSuffix(e.Path, "/Two") }},
	"nothing":   {Filter{Path: "no such path"}, func(*Event) bool { return false }},
	"endpoints": {Filter{Endpoints: []string{"/me", "/custom/*"}}, func(e *Event) bool { return e.Endpoint == "/me" || e.Endpoint == "/custom/a" }},
	"two exact": {Filter{Endpoints: []string{"/me", "/data/contact"}}, func(e *Event) bool { return e.Endpoint == "/me" || e.Endpoint == "/data/contact" }},
	"several": {Filter{UserID: "ben", KeyID: "k1", Method: "GET", Class: "4xx", Endpoints: []string{"/data/*"}}, func(e *Event) bool {
		return e.UserID == "ben" && e.APIKeyID == "k1" && e.Method == "GET" && e.Status/100 == 4 && strings.HasPrefix(e.Endpoint, "/data/")
	}},
	"times": {Filter{Since: noon.Add(20 * time.Second), Until: noon.AddDate(0, 0, 1).Add(80 * time.Second)}, func(e *Event) bool {
		return !e.Start.Before(noon.Add(20*time.Second)) && e.Start.Before(noon.AddDate(0, 0, 1).Add(80*time.Second))
	}},
}

func allPages(t *testing.T, log *Log, f Filter, limit int, patience time.Duration) (ids []string, empty int) {
	t.Helper()
	f.Limit = limit
	for range 2000 {
		page, err := log.Page(t.Context(), f, patience)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > limit || len(page.Entries) < limit && page.Next != "" && page.Searched.IsZero() {
			t.Fatalf("%d of %d entries, next %q", len(page.Entries), limit, page.Next)
		}
		for _, e := range page.Entries {
			ids = append(ids, e.RequestID)
		}
		if page.Next == "" {
			return ids, empty
		}
		if len(page.Entries) == 0 {
			empty++
		}
		f.Before = page.Next
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

// A tail that goes on reads all pages since its last entry: where the machine is
// slow, each of them ends at its first block.
func TestAnInterruptedTailMissesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		fillKinds(t, d, 900)
		log := &Log{DB: d, Tenant: "acme"}
		var ids []string // newest first
		if err := log.Query(t.Context(), Filter{KeyID: "k1"}, func(e *Entry) error { ids = append(ids, e.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		slices.Reverse(ids)
		for _, missed := range []int{0, 1, 40, tailHeld, len(ids) - 1} {
			for _, patience := range []time.Duration{0, time.Hour} {
				list, older, err := newer(Filter{KeyID: "k1"}, ids[missed], func(f Filter) (Page, error) { return log.Page(t.Context(), f, patience) })
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, e := range slices.Backward(list) {
					got = append(got, e.ID)
				}
				if !slices.Equal(got, ids[:min(missed, tailHeld)]) || older != (missed > tailHeld) {
					t.Errorf("%d entries, %d were missed, %v; older: %v", len(got), missed, patience, older)
				}
			}
		}
	})
}

func countAll(t *testing.T, log *Log, f Filter, patience time.Duration) (sum Bucket) {
	t.Helper()
	below := ""
	for range 2000 {
		h, err := log.Histogram(t.Context(), f, 24, below, patience)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range h.Buckets {
			sum = Bucket{sum.Answered + b.Answered, sum.Refused + b.Refused, sum.Failed + b.Failed}
		}
		if below = h.Next; below == "" {
			return sum
		}
	}
	t.Fatal("the histogram does not end")
	return sum
}

func counts(events []*Event, wants func(*Event) bool) (sum Bucket) {
	for _, ev := range events {
		switch {
		case !wants(ev):
		case ev.Status >= 500:
			sum.Failed++
		case ev.Status >= 400:
			sum.Refused++
		default:
			sum.Answered++
		}
	}
	return sum
}

func TestAnEntryByItsID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		events := fillKinds(t, d, 120)
		log := &Log{DB: d, Tenant: "acme"}
		page, err := log.Page(t.Context(), Filter{Limit: 200}, time.Hour)
		if err != nil || len(page.Entries) != len(events) {
			t.Fatal(len(page.Entries), err)
		}
		for i, e := range page.Entries {
			one, err := log.ByID(t.Context(), e.ID)
			if err != nil || one == nil || one.RequestID != events[i].RequestID || !strings.Contains(one.Response, "body") {
				t.Fatalf("%d: %+v %v", i, one, err)
			}
		}
		for _, id := range []string{"", "x", clock.NewID(noon), page.Entries[0].ID + "!", fmt.Sprintf("%s0", page.Entries[0].ID[:35])} {
			if e, err := log.ByID(t.Context(), id); err != nil || e != nil && e.ID != id {
				t.Errorf("%q: %+v %v", id, e, err)
			}
		}
		if e, err := (&Log{DB: d, Tenant: "umbrella"}).ByID(t.Context(), page.Entries[0].ID); err != nil || e != nil {
			t.Errorf("another tenant reads it: %+v %v", e, err)
		}
	})
}
