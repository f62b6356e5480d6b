package server

import (
	"context"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
)

// authenticate returns the viewer of the request's credential, if it is of a
// kind that the route accepts. A request without a valid one counts against its
// address: the error is UNAUTHORIZED, or RATE_LIMITED when that budget is used
// up. A credential of an external user is SERVICE_UNAVAILABLE while External
// Identity is off.
func (x *exchange) authenticate(ctx context.Context) (viewer access.Viewer, err error) {
	token := httpapi.Bearer(x.r.Header)
	switch looksLikeJWT := strings.Count(token, ".") == 2; {
	case looksLikeJWT && !x.config.Tenant.Settings.ExternalIdentity.Enabled:
		x.takeAddress()
		return access.Viewer{}, errIdentityOff // check 4 of contract H3
	case looksLikeJWT && x.route.Auth.Takes(credential.AccessToken):
		viewer, err = x.byJWT(ctx, token)
	case x.route.Auth.Takes(credential.APIKey):
		viewer, err = x.byKey(ctx, token) // a JWT is no key, and refused as one
	default:
		err = apikey.ErrUnauthorized
	}
	if err == nil && viewer.External() && !x.config.Tenant.Settings.ExternalIdentity.Enabled {
		x.takeAddress()
		return access.Viewer{}, errIdentityOff // contract K7
	}
	if fault.CodeOf(err) != fault.Unauthorized {
		return viewer, err
	}
	x.w.Header()["Www-Authenticate"] = challenge
	if !x.takeAddress() {
		return access.Viewer{}, x.rateLimited()
	}
	return access.Viewer{}, err
}

var challenge = []string{"Bearer"}

// byKey returns the viewer of an API key.
func (x *exchange) byKey(ctx context.Context, token string) (access.Viewer, error) {
	resolved, err := x.s.keys.Resolve(ctx, x.config, token)
	if resolved != nil {
		x.key, x.keyID, x.keyPrefix, x.userID, x.auth = resolved.Key, resolved.Key.ID, resolved.Key.Prefix, resolved.Key.UserID, credential.APIKey
	} else {
		x.keyPrefix = secret.Prefix(token)
	}
	if err != nil {
		x.key = nil // the key exists and is not valid: only the logs name it
		return access.Viewer{}, err
	}
	return resolved.Viewer, nil
}

// byJWT returns the viewer of an external user's access token.
func (x *exchange) byJWT(ctx context.Context, token string) (access.Viewer, error) {
	viewer, err := x.s.identity.Authenticate(ctx, x.config, token)
	if err != nil {
		x.keyPrefix = secret.Prefix(token)
		return viewer, err
	}
	x.auth, x.userID = credential.AccessToken, viewer.UserID()
	return viewer, nil
}
