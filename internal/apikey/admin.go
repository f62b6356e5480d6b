package apikey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Admin has the routes of the admin API about API keys. Whose keys a viewer sees
// and changes is contract K9.
type Admin struct {
	keys    *Service
	cursors httpapi.Cursors
	used    func(keyID string, limit int) int
}

// NewAdmin returns the routes over a service. used returns how many requests this
// process has counted against a key's limit in the present minute.
func NewAdmin(keys *Service, cursors httpapi.Cursors, used func(keyID string, limit int) int) *Admin {
	return &Admin{keys: keys, cursors: cursors, used: used}
}

// maxBody bounds a body: a key may have a thousand origins.
const maxBody = 512 << 10

// Routes returns the routes.
func (a *Admin) Routes() []httpapi.Route {
	route := func(method, pattern string, query []string, takes, gives any, handler func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) httpapi.Route {
		r := httpapi.Route{
			Method: method, Pattern: "/admin/v1/" + pattern, Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
			Needs: httpapi.AnyStaff, Query: query, Takes: takes, Gives: gives, Handler: handler,
		}
		if takes != nil {
			r.BodyCap = maxBody
		}
		return r
	}
	return []httpapi.Route{
		route(http.MethodGet, "keys", []string{"cursor", "limit", "user", "id"}, nil, []KeyInfo{}, a.serveList),
		route(http.MethodPost, "keys", nil, NewKey{}, CreatedKey{}, a.serveCreate),
		route(http.MethodPatch, "keys/{id}", nil, KeyChange{}, KeyInfo{}, a.serveChange),
		route(http.MethodDelete, "keys/{id}", nil, nil, DeletedKey{}, a.serveDelete),
	}
}

// KeyInfo is an API key as its list shows it, without its token.
type KeyInfo struct {
	ID                 string     `json:"id"`
	Name               string     `json:"name"`
	Prefix             string     `json:"prefix"`
	User               KeyUser    `json:"user"`
	RateLimitPerMinute int        `json:"rateLimitPerMinute"`
	UsedThisMinute     int        `json:"usedThisMinute"` // as the answering node has counted
	CORSAllowedOrigins []string   `json:"corsAllowedOrigins"`
	IPAllowlist        []string   `json:"ipAllowlist"`
	ExpiresAt          *time.Time `json:"expiresAt"`
	LastUsedAt         *time.Time `json:"lastUsedAt"`
	CreatedAt          time.Time  `json:"createdAt"`
	Version            string     `json:"version"`   // of what can be changed
	MayChange          bool       `json:"mayChange"` // the viewer may change and delete it
}

// KeyUser is the user for whom a key acts. Address and name are null where the
// viewer may not see them.
type KeyUser struct {
	ID    user.ID `json:"id"`
	Email *string `json:"email"`
	Name  *string `json:"name"`
}

// NewKey is the body that creates a key. What is left out has its default: the
// viewer, 1000 requests a minute, no browser, every address, no expiry.
type NewKey struct {
	Name               string     `json:"name"`
	User               string     `json:"user,omitempty"` // an e-mail address or an id
	RateLimitPerMinute *int       `json:"rateLimitPerMinute,omitempty"`
	CORSAllowedOrigins []string   `json:"corsAllowedOrigins,omitempty"`
	IPAllowlist        []string   `json:"ipAllowlist,omitempty"`
	ExpiresAt          *time.Time `json:"expiresAt,omitempty"`
}

// CreatedKey is a new key with its token, which cannot be read again.
type CreatedKey struct {
	Key   KeyInfo `json:"key"`
	Token string  `json:"token"`
}

// KeyChange changes what it names; Version is that of the key it was made against.
type KeyChange struct {
	Version            string    `json:"version"`
	Name               *string   `json:"name,omitempty"`
	RateLimitPerMinute *int      `json:"rateLimitPerMinute,omitempty"`
	CORSAllowedOrigins *[]string `json:"corsAllowedOrigins,omitempty"`
	IPAllowlist        *[]string `json:"ipAllowlist,omitempty"`
	ExpiresAt          *string   `json:"expiresAt,omitempty"` // a time, or "" for never
}

// DeletedKey is the answer to a deletion.
type DeletedKey struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// version identifies what can be changed of a key.
func (k *Key) version() string {
	h := sha256.New()
	for _, part := range append(append([]string{k.Name, strconv.Itoa(k.RateLimitPerMinute), strconv.FormatInt(k.ExpiresAt, 10), "origins"}, k.Origins...),
		append([]string{"addresses"}, k.Allowlist.Strings()...)...) {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// seesAll reports whether a viewer sees every key of the tenant.
func seesAll(w access.Viewer) bool { return w.TenantOwner() || w.May(access.ManageEndpoints) }

// sees reports whether a viewer sees a key, and mayChange whether they may change
// it.
func sees(w access.Viewer, k *Key) bool { return seesAll(w) || k.UserID == w.UserID() }

func mayChange(w access.Viewer, k *Key) bool { return MayCreateFor(w, k.UserID) == nil }

func reply(data, meta any, err error) (httpapi.Reply, error) {
	if err != nil {
		return httpapi.Reply{}, err
	}
	var r httpapi.Reply
	if r.Data, err = json.Marshal(data); err == nil && meta != nil {
		r.Meta, err = json.Marshal(meta)
	}
	return r, err
}

func (a *Admin) serveList(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	query, err := httpapi.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return httpapi.Reply{}, err
	}
	limit, of := 50, query.Get("user")
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 200 {
			return httpapi.Reply{}, fault.Fields("limit: expected 1 to 200", map[string]string{"limit": "expected 1 to 200"})
		}
	}
	if !seesAll(c.Viewer) {
		if of != "" && of != string(c.Viewer.UserID()) {
			of = "nobody"
		} else {
			of = string(c.Viewer.UserID())
		}
	}
	scope := strings.Join([]string{"keys", string(c.Viewer.Tenant()), of}, "\x00")
	below, err := a.cursors.Open(scope, query.Get("cursor"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	var list []*Key
	if id := query.Get("id"); id != "" {
		list, err = a.keys.one(ctx, c, id)
	} else {
		list, err = a.keys.store.page(ctx, c.Viewer.Tenant(), user.ID(of), below, limit+1)
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	meta := httpapi.ListMeta{HasMore: len(list) > limit}
	if meta.HasMore {
		list = list[:limit]
		next := a.cursors.Seal(scope, list[limit-1].ID)
		meta.NextCursor = &next
	}
	meta.Count = len(list)
	infos, err := a.show(ctx, c, list)
	return reply(infos, meta, err)
}

// one returns the key with an id, if there is one that the viewer sees.
func (s *Service) one(ctx context.Context, c *httpapi.Authed, id string) ([]*Key, error) {
	k, err := s.store.byID(ctx, c.Viewer.Tenant(), id)
	if err != nil || k == nil || !sees(c.Viewer, k) {
		return nil, err
	}
	return []*Key{k}, nil
}

// show returns keys as the viewer may see them.
func (a *Admin) show(ctx context.Context, c *httpapi.Authed, list []*Key) ([]KeyInfo, error) {
	users, err := a.keys.store.users(ctx, c.Viewer.Tenant(), list)
	if err != nil {
		return nil, err
	}
	email, name := false, false
	if r, err := c.Viewer.OnUsers(); err == nil && c.Viewer.MayNameUsers() {
		email, name = r.Column("email").Read, r.Column("name").Read
	}
	infos := make([]KeyInfo, 0, len(list))
	for _, k := range list {
		self := k.UserID == c.Viewer.UserID()
		info := KeyInfo{
			ID: k.ID, Name: k.Name, Prefix: k.Prefix, User: KeyUser{ID: k.UserID}, RateLimitPerMinute: k.RateLimitPerMinute,
			UsedThisMinute: a.used(k.ID, k.RateLimitPerMinute), CORSAllowedOrigins: append([]string{}, k.Origins...), IPAllowlist: append([]string{}, k.Allowlist.Strings()...),
			ExpiresAt: instant(k.ExpiresAt), LastUsedAt: instant(max(k.LastUsedAt, a.keys.lastUse(c.Viewer.Tenant(), k.ID))),
			CreatedAt: clock.FromMicros(k.CreatedAt), Version: k.version(), MayChange: mayChange(c.Viewer, k),
		}
		if u := users[k.UserID]; u != nil && (email || self) {
			info.User.Email = &u.Email
		}
		if u := users[k.UserID]; u != nil && (name || self) {
			info.User.Name = &u.Name
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (a *Admin) showOne(ctx context.Context, c *httpapi.Authed, k *Key) (KeyInfo, error) {
	list, err := a.show(ctx, c, []*Key{k})
	if err != nil {
		return KeyInfo{}, err
	}
	return list[0], nil
}

// instant returns a time in microseconds, or nil for 0.
func instant(micros int64) *time.Time {
	if micros == 0 {
		return nil
	}
	at := clock.FromMicros(micros)
	return &at
}

// lastUse returns when this process last accepted a key, in microseconds, 0 for
// never.
func (s *Service) lastUse(t tenant.ID, id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uses[string(t)+"/"+id]; u != nil {
		return u.at.Load()
	}
	return 0
}
