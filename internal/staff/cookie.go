package staff

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"gatehouse/internal/httpapi"
)

// The names of the session cookie. Browsers take one that begins with __Host- only from
// TLS, for the whole host and for no other: no neighbouring host can plant one.
const (
	plainCookie  = "gatehouse_session"
	secureCookie = "__Host-gatehouse_session"
)

// byTLS reports whether the browser talks to this host by TLS. What it says itself in
// Origin counts, too, because a proxy may not say it: the surface has checked that the
// origin is this host, so a page can claim nothing but what is true of itself.
func byTLS(c *httpapi.Call) bool {
	if c.Secure {
		return true
	}
	u, err := url.Parse(c.Request.Header.Get("Origin"))
	return err == nil && u.Scheme == "https"
}

// setCookie returns the Set-Cookie header that gives the browser a session token.
func setCookie(c *httpapi.Call, token string) http.Header {
	name, secure := plainCookie, byTLS(c)
	if secure {
		name = secureCookie
	}
	//nolint:gosec // Secure where the browser talks by TLS; over plain HTTP it would drop the cookie
	k := &http.Cookie{Name: name, Value: token, Path: "/", MaxAge: int(absoluteLife.Seconds()), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure}
	return http.Header{"Set-Cookie": {k.String()}}
}

// dropCookie returns the Set-Cookie headers that take the session token from the browser.
func dropCookie() http.Header {
	h := http.Header{}
	for _, name := range []string{plainCookie, secureCookie} {
		//nolint:gosec // as in setCookie; it carries nothing
		k := &http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: name == secureCookie}
		h.Add("Set-Cookie", k.String())
	}
	return h
}

// cookie returns the session token of a request, "" for none. A request that is known to
// have come by TLS has to have it in the secure cookie. Two cookies of one name count as
// none: another host or path has planted one of them.
func cookie(c *httpapi.Call) string {
	if list := c.Request.CookiesNamed(secureCookie); len(list) > 0 || c.Secure {
		return only(list)
	}
	return only(c.Request.CookiesNamed(plainCookie))
}

// Presents reports whether a request has a session cookie, good or not.
func Presents(r *http.Request) bool {
	return len(r.CookiesNamed(secureCookie)) > 0 || len(r.CookiesNamed(plainCookie)) > 0
}

func only(list []*http.Cookie) string {
	if len(list) != 1 {
		return ""
	}
	return list[0].Value
}

// maxAgent is how much of a User-Agent header is kept with a session, in bytes.
const maxAgent = 200

// shortAgent returns the beginning of a User-Agent header as text that both databases
// take.
func shortAgent(agent string) string {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	agent = strings.ToValidUTF8(agent, "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return -1
		}
		return r
	}, agent)
}
