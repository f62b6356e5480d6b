package audit

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"gatehouse/internal/clock"
)

const (
	anAccessToken = "eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiIwMTkzIn0.c2lnbmF0dXJl"
	anOpaqueToken = "Qm9yZWQtb2YtdGhpcy1wYXJ0aWN1bGFyX3Rva2VuIQx"
)

func TestSecretsAreTakenOutOfPaths(t *testing.T) {
	hook := "svc_whk_" + strings.Repeat("ab", 32)
	for path, want := range map[string]string{
		"/public/v1/custom/" + hook:                    "/public/v1/custom/[redacted]",
		"/public/v1/custom/shop/" + hook + "/x":        "/public/v1/custom/shop/[redacted]/x",
		"/public/v1/custom/shop%2F" + hook:             "/public/v1/custom/[redacted]",
		"/public/v1/custom/svc%5Fwhk_" + hook[8:]:      "/public/v1/custom/[redacted]",
		"/public/v1/custom/svc%255Fwhk_" + hook[8:]:    "/public/v1/custom/[redacted]",
		"/public/v1/me/" + anAccessToken:               "/public/v1/me/[redacted]",
		"/public/v1/me/Bearer " + anAccessToken:        "/public/v1/me/[redacted]",
		"/public/v1/auth/verify/" + anOpaqueToken:      "/public/v1/auth/verify/[redacted]",
		"/public/v1/auth/verify/123456":                "/public/v1/auth/verify/[redacted]",
		"/reset-password/abc/x":                        "/reset-password/[redacted]/x",
		"/public/v1/auth/verify?token=abc":             "/public/v1/auth/verify?token=[redacted]",
		"/public/v1/auth/verify%3Ftoken%3Dabc":         "/public/v1/auth/verify?token=[redacted]",
		"/public/v1/auth/refresh;refreshToken=abc;a=1": "/public/v1/auth/refresh;refreshToken=[redacted];a=1",
		"/public/v1/data/contact&api_key=abc":          "/public/v1/data/contact&api_key=[redacted]",
		"/x/" + anOpaqueToken:                          "/x/[redacted]",
		"/x/" + anOpaqueToken[:24]:                     "/x/[redacted]",
		"/access_token/abc":                            "/access_token/[redacted]",
	} {
		if got := RedactPath(path); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", path, got, want)
		}
	}
	for _, path := range []string{
		"", "/", "/public/v1/me", "/public/v1/data/contact", "/public/v1/data/contact/" + anID, "/public/v1/data/token/" + anID,
		"/public/v1/custom/order-total-of-a-very-long-name-that-someone-chose", "/public/v1/auth/users/" + anID + "/activate",
		"/public/v1/auth/users/" + anID + "/activate/" + anID,
		"/public/v1/auth/password-reset", "/public/v1/auth/verify", "/Zürich/ö%20ö", "/a=b;c=d", "/favicon.ico", "//x//", "/verify/",
	} {
		if got := RedactPath(path); got != path {
			t.Errorf("%s became %s", path, got)
		}
	}
	for range 1000 { // whatever a token of External Identity looks like
		var random [32]byte
		_, _ = rand.Read(random[:])
		token := base64.RawURLEncoding.EncodeToString(random[:])
		for _, path := range []string{"/" + token, "/x/" + token + "/y", "/x-" + token, "/x=" + token, "/" + url.QueryEscape("?"+token)} {
			if got := RedactPath(path); strings.Contains(got, token) {
				t.Fatalf("%s is kept as %s", path, got)
			}
		}
	}
}

const anID = "0193a1b2-0000-7000-8000-00000000abcd"

func TestSecretsAreTakenOutOfQueries(t *testing.T) {
	for query, want := range map[string]string{
		"access_token=p&limit=5":                     "access_token=[redacted]&limit=5",
		"access_key=p&Bearer=p&jwt=p&pwd=p&keys=p":   "access_key=[redacted]&Bearer=[redacted]&jwt=[redacted]&pwd=[redacted]&keys=p",
		"api_key=p&x-api-key=p&apikey=p":             "api_key=[redacted]&x-api-key=[redacted]&apikey=[redacted]",
		"token=p&activationToken=p&refreshToken=p":   "token=[redacted]&activationToken=[redacted]&refreshToken=[redacted]",
		"reset_token=p;id_token=p;webhook-secret=p":  "reset_token=[redacted];id_token=[redacted];webhook-secret=[redacted]",
		"code=p&state=s&Key=p&sig=p":                 "code=[redacted]&state=s&Key=[redacted]&sig=[redacted]",
		"%63ode=p&tok%65n=p":                         "%63ode=[redacted]&tok%65n=[redacted]",
		"filter[code]=DE&filter[token]=p&cursor=abc": "filter[code]=DE&filter[token]=[redacted]&cursor=abc",
		"a=" + anAccessToken:                         "a=[redacted]",
		anAccessToken + "&" + "b":                    "[redacted]&b",
		"limit=5&filter%5Bstage%5D=won":              "limit=5&filter%5Bstage%5D=won",
	} {
		request, _ := column(t, &Event{Query: query})
		if !strings.Contains(request, `"query":"`+want+`"`) {
			t.Errorf("%s\nis kept as %s\nwant %s", query, request, want)
		}
	}
}

// Other log lines than a request's also have paths.
func TestOtherLinesHaveNoSecretsToo(t *testing.T) {
	var out bytes.Buffer
	l := NewRequestLog(&out, clock.NewFake(noon))
	hook := "svc_whk_" + strings.Repeat("ab", 32)
	l.Emit("server.panic", map[string]any{"path": "/public/v1/me/" + anAccessToken, "panic": "at " + hook})
	l.Emit("server.error", map[string]any{"path": "/verify/" + anOpaqueToken, "error": errors.New("of " + hook)})
	l.Emit("other", map[string]any{"who": fmt.Stringer(&stringer{hook})})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"abab", "eyJ", anOpaqueToken} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is in %s", secret, &out)
		}
	}
}

type stringer struct{ text string }

func (s *stringer) String() string { return s.text }

// What a secret's name ends with is known to namesSecret.
func TestEveryNameOfASecretIsFoundInAPath(t *testing.T) {
	for _, names := range [][]string{secretNames, pairEnds, afterNames} {
		for _, name := range names {
			for _, n := range []string{name, strings.ToUpper(name)} {
				if got := RedactPath("/x/" + n + "/abc"); got != "/x/"+n+"/[redacted]" {
					t.Errorf("%s", got)
				}
			}
		}
	}
}

func BenchmarkRedactPath(b *testing.B) {
	for b.Loop() {
		RedactPath("/public/v1/data/contact/" + anID)
	}
}
