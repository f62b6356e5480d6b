package staff

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"image/png"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

const (
	step = 30 * time.Second // of a code, as every authenticator app has it
	// skew is how many steps before and after the present one are accepted, too: the
	// clocks of telephones are never quite right.
	skew          = 1
	recoveryCodes = 10
	recoveryBytes = 10 // of a recovery code: 80 bits
	qrSize        = 240
)

// purposeOf names what a user's key is sealed for.
func purposeOf(t tenant.ID, of user.ID) string { return "staff-factor/" + string(t) + "/" + string(of) }

// Enrolment is what an authenticator app needs of a new key.
type Enrolment struct {
	Secret string `json:"secret"` // in base32, to be typed
	URI    string `json:"uri"`    // otpauth://
	QR     string `json:"qr"`     // the URI as a picture: data:image/png
}

// Password is the body of requests that ask for the current password once more.
type Password struct {
	CurrentPassword string `json:"currentPassword,omitempty"` // not asked for right after the sign-in
}

// Code is the body of requests that show the second factor: one of the two members.
type Code struct {
	Code         string `json:"code,omitempty"`         // six digits of the authenticator app
	RecoveryCode string `json:"recoveryCode,omitempty"` // one of those shown at the enrolment
}

// Recovery is shown once: the codes that replace the authenticator app, each once.
type Recovery struct {
	RecoveryCodes []string `json:"recoveryCodes"`
	Session       Session  `json:"session"`
}

var (
	errCode       = fault.New(fault.InvalidCredentials, "the code is wrong, or was used already")
	errNoProposal = fault.New(fault.Conflict, "no second factor waits to be confirmed: begin again")
)

// serveEnrol makes a new key, which waits to be confirmed. A user who is signed in gives
// their password once more.
func (s *Service) serveEnrol(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, err := httpapi.Decode[Password](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	switch c.Session.Stage {
	case credential.CodeDue:
		return httpapi.Reply{}, fault.New(fault.Forbidden, "the sign-in is not complete").With("stage", c.Session.Stage)
	case credential.Full:
		if err := required(map[string]string{"currentPassword": body.CurrentPassword}); err != nil {
			return httpapi.Reply{}, err
		}
		_, leave, err := s.confirmed(ctx, c, body.CurrentPassword)
		if err != nil {
			return httpapi.Reply{}, err
		}
		leave()
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer(c.Config.Tenant), AccountName: c.Session.Email})
	if err != nil {
		return httpapi.Reply{}, err
	}
	picture, err := qrOf(key)
	if err != nil {
		return httpapi.Reply{}, err
	}
	sealed := s.keyring.Seal(purposeOf(c.Config.Tenant.ID, c.Session.UserID), []byte(key.Secret()))
	err = s.store.propose(ctx, c.Config.Tenant.ID, c.Session.UserID, sealed)
	return reply(Enrolment{Secret: key.Secret(), URI: key.URL(), QR: picture}, err)
}

// issuer returns the name under which an authenticator app lists the key. A colon would
// end it.
func issuer(t *tenant.Tenant) string {
	return strings.ReplaceAll(strings.TrimSpace(t.DisplayName), ":", " ") + " (Gatehouse)"
}

func qrOf(key *otp.Key) (string, error) {
	picture, err := key.Image(qrSize, qrSize)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return "", err
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// serveConfirm takes the new key into use once the user shows a code of it, and answers the
// recovery codes. It ends the user's other sessions, and completes a sign-in that waits for
// the enrolment.
func (s *Service) serveConfirm(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	tenantID := c.Config.Tenant.ID
	if c.Session.Stage == credential.CodeDue {
		return httpapi.Reply{}, fault.New(fault.Forbidden, "the sign-in is not complete").With("stage", c.Session.Stage)
	}
	body, acc, err := s.takeCode(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, err := s.store.factor(ctx, tenantID, acc.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	switch {
	case c.Session.Stage == credential.EnrolmentDue && f.sealed != "": // enrolled since, elsewhere
		return httpapi.Reply{}, errUnauthorized
	case f.pending == "":
		return httpapi.Reply{}, errNoProposal
	}
	at, err := s.check(tenantID, acc.ID, f.pending, body.Code, f.now)
	if err != nil {
		return httpapi.Reply{}, err
	}
	codes, hashes := newRecoveryCodes()
	next := nextSession{id: c.Session.ID}
	token := ""
	if c.Session.Stage != credential.Full {
		token = newToken()
		next.hash = secret.Hash(token)
	}
	row, ok, err := s.store.confirm(ctx, tenantID, acc, f, at, hashes, next)
	switch {
	case err != nil:
		return httpapi.Reply{}, err
	case !ok:
		return httpapi.Reply{}, errNoProposal
	}
	viewer, is := c.Viewer, c.Session
	if token != "" {
		if viewer, is, err = s.open(ctx, c.Config, row, acc); err != nil {
			return httpapi.Reply{}, err
		}
	}
	described, err := s.describe(ctx, c.Config, is, viewer)
	if err != nil {
		return httpapi.Reply{}, err
	}
	answer, err := reply(Recovery{RecoveryCodes: codes, Session: *described}, nil)
	if token != "" {
		answer.Header = setCookie(c.Call, token)
	}
	return answer, err
}

// serveCode completes a sign-in with the second factor.
func (s *Service) serveCode(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	tenantID := c.Config.Tenant.ID
	if c.Session.Stage != credential.CodeDue {
		return httpapi.Reply{}, fault.New(fault.Conflict, "this session waits for no code").With("stage", c.Session.Stage)
	}
	body, acc, err := s.takeCode(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, err := s.store.factor(ctx, tenantID, acc.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if f.sealed == "" { // removed since; the next sign-in asks for none
		return httpapi.Reply{}, errUnauthorized
	}
	var p proof
	if body.RecoveryCode != "" {
		p.code = hashRecovery(body.RecoveryCode)
	} else if p.step, err = s.check(tenantID, acc.ID, f.sealed, body.Code, f.now); err != nil {
		return httpapi.Reply{}, err
	}
	token := newToken()
	row, ok, err := s.store.pass(ctx, tenantID, acc, f, p, nextSession{c.Session.ID, secret.Hash(token)})
	if err == nil && !ok {
		err = errCode
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	return s.welcome(ctx, c.Call, row, acc, token)
}

// welcome returns the answer that gives the browser the token of a session.
func (s *Service) welcome(ctx context.Context, c *httpapi.Call, row session, acc user.Account, token string) (httpapi.Reply, error) {
	viewer, is, err := s.open(ctx, c.Config, row, acc)
	if err != nil {
		return httpapi.Reply{}, err
	}
	data, err := s.describe(ctx, c.Config, is, viewer)
	answer, err := reply(data, err)
	answer.Header = setCookie(c, token)
	return answer, err
}

// takeCode reads a body with a code, and charges the attempt to the user and the address.
func (s *Service) takeCode(ctx context.Context, c *httpapi.Authed) (body Code, acc user.Account, err error) {
	limits := &c.Config.Tenant.Settings.ExternalIdentity.Limits
	if err := s.takeAddress(c.Call); err != nil {
		return body, acc, err
	}
	if body, err = httpapi.Decode[Code](c.Call); err != nil {
		return body, acc, err
	}
	if (body.Code == "") == (body.RecoveryCode == "") {
		return body, acc, fault.Fields("expected one code", map[string]string{"code": "expected this or recoveryCode"})
	}
	perUser := s.limits.Of(c.Call, "code", string(c.Session.UserID), signin.Rate{Limit: limits.LoginPerEmailPer15Minutes, Window: 15 * time.Minute})
	if err := s.limits.Take(c.Call, perUser); err != nil {
		return body, acc, err
	}
	acc, err = s.store.account(ctx, c.Config.Tenant.ID, c.Session.UserID)
	return body, acc, err
}

// check returns the time step of which a code is, by a sealed key, at now in microseconds.
// It returns INVALID_CREDENTIALS if it is of none that is accepted. It compares with every
// step in constant time.
func (s *Service) check(t tenant.ID, of user.ID, sealed, code string, now int64) (at int64, err error) {
	key, err := s.keyring.Open(purposeOf(t, of), sealed)
	if err != nil {
		return 0, err
	}
	present := now / micros(step)
	for n := present - skew; n <= present+skew; n++ {
		right, err := hotp.ValidateCustom(code, uint64(n), string(key), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && right {
			at = n
		}
	}
	if at == 0 {
		return 0, errCode
	}
	return at, nil
}

var recoveryEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newRecoveryCodes returns new recovery codes, in groups of four characters, and their
// hashes. A plain hash is enough: they are random.
func newRecoveryCodes() (codes []string, hashes []secret.TokenHash) {
	for range recoveryCodes {
		var random [recoveryBytes]byte
		_, _ = rand.Read(random[:]) // never fails
		text := strings.ToLower(recoveryEncoding.EncodeToString(random[:]))
		code := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		codes, hashes = append(codes, code), append(hashes, hashRecovery(code))
	}
	return codes, hashes
}

// hashRecovery returns the hash of a recovery code, however it was typed.
func hashRecovery(code string) secret.TokenHash {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(code))
	return secret.Hash("recovery/" + plain)
}

// serveDropFactor removes the user's second factor. It returns FORBIDDEN if the tenant
// demands one.
func (s *Service) serveDropFactor(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, err := httpapi.Decode[Password](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"currentPassword": body.CurrentPassword}); err != nil {
		return httpapi.Reply{}, err
	}
	if c.Config.Tenant.Settings.Staff.FactorRequired() {
		return httpapi.Reply{}, fault.New(fault.Forbidden, "this tenant demands a second factor: set up another one to replace it")
	}
	_, leave, err := s.confirmed(ctx, c, body.CurrentPassword)
	if err != nil {
		return httpapi.Reply{}, err
	}
	leave()
	return reply(Done{true}, s.store.dropFactor(ctx, c.Config.Tenant.ID, c.Session.UserID))
}
