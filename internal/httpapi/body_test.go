package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

const longest = 10 << 20

// callWith returns a call with a body of n bytes of JSON, of a tenant.
func callWith(ctx context.Context, id tenant.ID, n int) *httpapi.Call {
	body := `{"t":"` + strings.Repeat("x", n-len(`{"t":""}`)) + `"}`
	r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	cfg := &access.Config{Tenant: &tenant.Tenant{ID: id}}
	return &httpapi.Call{Request: r, Config: cfg, Route: &httpapi.Route{BodyCap: longest}}
}

// reads counts what is read of a body.
type reads struct {
	io.ReadCloser
	bytes int
}

func (r *reads) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.bytes += n
	return n, err
}

// TestABodyWithoutRoomIsRefusedUnread: a crowd of bodies that have no room reads nothing that is thrown away. One whose
// length is not announced is read as far as there is room.
func TestABodyWithoutRoomIsRefusedUnread(t *testing.T) {
	bodies := admission.NewBudget(8 << 20)
	ask := func(n int, announced bool) (read int, err error) {
		c := callWith(t.Context(), "acme", n)
		counted := &reads{ReadCloser: c.Request.Body}
		c.Request.Body = counted
		if !announced {
			c.Request.ContentLength = -1
		}
		c.Received = bodies.Charge("acme")
		defer c.Release()
		_, err = c.Body()
		return counted.bytes, err
	}
	for range 2 {
		if read, err := ask(3<<20, true); read != 3<<20 || err != nil {
			t.Errorf("3 MiB of 8: %d bytes read, %v", read, err)
		}
	}
	if read, err := ask(5<<20, true); read != 0 || fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("5 MiB of 8, where one may have half: %d bytes read, %v", read, err)
	}
	if read, err := ask(5<<20, false); read == 0 || read > 4<<20 || fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("5 MiB that are not announced: %d bytes read, %v", read, err)
	}
	if bodies.Used() != 0 {
		t.Errorf("%d bytes are held at the end", bodies.Used())
	}
}

// TestWhatAnybodyMaySendIsFree: bodies of routes without a credential take nothing of their tenant's share.
func TestWhatAnybodyMaySendIsFree(t *testing.T) {
	for _, announced := range []bool{true, false} {
		bodies := admission.NewBudget(8 << 20)
		c := callWith(t.Context(), "acme", httpapi.AuthBodyCap)
		c.Route.BodyCap = httpapi.AuthBodyCap
		if !announced {
			c.Request.ContentLength = -1
		}
		c.Received = bodies.Charge("acme")
		if _, err := c.Body(); err != nil || bodies.Used() != 0 {
			t.Errorf("announced %t: %d bytes are held, %v", announced, bodies.Used(), err)
		}
		c.Release()
	}
}

// TestALargeBodyIsParsedInTurn: a large body waits for a turn at the cores, a small one does not.
func TestALargeBodyIsParsedInTurn(t *testing.T) {
	cores := admission.NewCores(1)
	busy, err := cores.Start(t.Context(), "bravo")
	if err != nil {
		t.Fatal(err)
	}
	small := callWith(t.Context(), "acme", admission.Heavy-1)
	small.Cores = cores
	if _, err := small.JSON(); err != nil {
		t.Errorf("a small body: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	for name, parse := range map[string]func(c *httpapi.Call) error{
		"JSON":    func(c *httpapi.Call) error { _, err := c.JSON(); return err },
		"AnyJSON": func(c *httpapi.Call) error { _, err := c.AnyJSON(); return err },
	} {
		late := callWith(ctx, "acme", admission.Heavy)
		late.Cores = cores
		if err := parse(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a large body while another computes: %v", name, err)
		}
	}
	busy.Stop()
	large := callWith(t.Context(), "acme", longest)
	large.Cores = cores
	if _, err := large.JSON(); err != nil {
		t.Errorf("a large body: %v", err)
	}
	if busy, err = cores.Start(t.Context(), "bravo"); err != nil { // the turn was given back
		t.Fatal(err)
	}
	busy.Stop()
}

// TestUncompressed: a body is uncompressed if no header says otherwise, the second included.
func TestUncompressed(t *testing.T) {
	for _, c := range []struct {
		encodings []string
		want      bool
	}{
		{nil, true}, {[]string{""}, true}, {[]string{"identity"}, true}, {[]string{"Identity", "identity"}, true},
		{[]string{"gzip"}, false}, {[]string{"identity", "gzip"}, false}, {[]string{"identity, gzip"}, false}, {[]string{"", "br"}, false},
	} {
		if got := httpapi.Uncompressed(http.Header{"Content-Encoding": c.encodings}); got != c.want {
			t.Errorf("%q: %v", c.encodings, got)
		}
	}
}
