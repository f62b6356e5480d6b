package prove

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// client uses one node with one key.
type client struct {
	base  string
	host  string // "" for acme's
	token string
	http  *http.Client
	note  func(*answer) // called with every answer
}

// answer is an answer to a request.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         []byte
	sent, at     time.Time // at is when the last byte arrived
}

// patience is how long an answer may take before it counts as hung.
const patience = 20 * time.Second

func (n *node) client(token string) *client {
	return &client{base: n.public, token: token, http: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) do(method, path, body string) (*answer, error) {
	var in io.Reader
	if body != "" {
		in = bytes.NewReader([]byte(body))
	}
	r, err := http.NewRequest(method, c.base+path, in)
	if err != nil {
		return nil, err
	}
	r.Host = cmp.Or(c.host, host)
	r.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := exchange(c.http, r)
	if err == nil && c.note != nil {
		c.note(a)
	}
	return a, err
}

// exchange sends a request and reads its answer to the end.
func exchange(c *http.Client, r *http.Request) (*answer, error) {
	a := &answer{method: r.Method, path: r.URL.RequestURI(), sent: time.Now()}
	res, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if a.body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	a.at, a.status, a.header = time.Now(), res.StatusCode, res.Header
	return a, nil
}

// hung reports whether an error means that no answer came in time.
func hung(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err) }

func isTimeout(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && u.Timeout()
}

func (a *answer) code() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e) // without an envelope there is no code
	return e.Error.Code
}

// outcome returns what an error says of the change that was asked for: "unknown", or "" for none.
func (a *answer) outcome() string {
	var e struct {
		Error struct {
			Details struct {
				Outcome string `json:"outcome"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e) // without an envelope there are no details
	return e.Error.Details.Outcome
}

func (a *answer) String() string {
	return fmt.Sprintf("%s %s: %d %.300s", a.method, a.path, a.status, a.body)
}

// record is a contact in an answer.
type record struct {
	ID        string          `json:"id"`
	FirstName string          `json:"first_name"`
	Email     string          `json:"email"`
	Score     *int64          `json:"score"`
	Extra     json.RawMessage `json:"extra"`
}

func (a *answer) record() (record, error) {
	var env struct {
		Data record `json:"data"`
	}
	err := json.Unmarshal(a.body, &env)
	return env.Data, err
}

// page is an answer of a list.
type page struct {
	Data []record `json:"data"`
	Meta struct {
		Count   int    `json:"count"`
		HasMore bool   `json:"hasMore"`
		Next    string `json:"nextCursor"`
	} `json:"meta"`
}

func (c *client) page(query string) (*page, error) { return c.pageOf(contact, query) }

func (c *client) pageOf(path, query string) (*page, error) {
	a, err := c.do("GET", path+"?"+query, "")
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%s", a)
	}
	var p page
	if err := json.Unmarshal(a.body, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	return &p, nil
}

// all returns the complete traversal.
func (c *client) all() ([]record, error) { return c.every(contact, "") }

// every returns the complete traversal of a list; query is "" or begins with &.
func (c *client) every(path, query string) ([]record, error) {
	var list []record
	for cursor := ""; ; {
		p, err := c.pageOf(path, "limit=200"+cursor+query)
		if err != nil {
			return nil, err
		}
		list = append(list, p.Data...)
		if !p.Meta.HasMore {
			return list, nil
		}
		cursor = "&cursor=" + p.Meta.Next
	}
}

// raw returns the complete traversal as the bytes of its records.
func (c *client) raw() ([]string, error) {
	var list []string
	query := "limit=200"
	for {
		a, err := c.do("GET", contact+"?"+query, "")
		if err != nil {
			return nil, err
		}
		if a.status != http.StatusOK {
			return nil, fmt.Errorf("%s", a)
		}
		var p struct {
			Data []json.RawMessage `json:"data"`
			Meta struct {
				HasMore bool   `json:"hasMore"`
				Next    string `json:"nextCursor"`
			} `json:"meta"`
		}
		if err := json.Unmarshal(a.body, &p); err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		for _, r := range p.Data {
			list = append(list, string(r))
		}
		if !p.Meta.HasMore {
			return list, nil
		}
		query = "limit=200&cursor=" + p.Meta.Next
	}
}

// filtered returns the list of the records with one value.
func (c *client) filtered(field, value string) ([]record, error) {
	p, err := c.page(url.QueryEscape("filter["+field+"]") + "=" + url.QueryEscape(value))
	if err != nil {
		return nil, err
	}
	return p.Data, nil
}
