package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"

	"gatehouse/bench/contact"
)

// Rows of External Identity. The last two are one list for one end-user.
const (
	rowLogin   = "login"
	rowJWTList = "list of 50, JWT"
	rowKeyList = "list of 50, its key"
)

// An end-user of the benchmark's tenant.
const (
	endUser         = "eva@customer.example"
	endUserPassword = "the password of an end-user"
)

const login = "/public/v1/auth/login"

// loginClients keep one core busy. With more, a server that checks all passwords
// at once would answer in batches that a short measurement cuts apart.
const loginClients = 4

// identity returns the installation as contestants for logins and for requests with an access
// token: one for each row, so that all start in the same state. The token is valid for an
// hour.
func (g *instance) identity(ctx context.Context) ([]contestant, error) {
	if err := g.apply(ctx, false); err != nil {
		return nil, err
	}
	key, err := g.key(ctx, endUser)
	if err != nil {
		return nil, err
	}
	s, err := g.serve(ctx, anyCore)
	if err != nil {
		return nil, err
	}
	defer s.stop(syscall.SIGTERM)
	if _, err := g.fill(ctx, s, map[string]string{endUser: key}, 1000, func(n int) planned {
		return planned{owner: endUser, fields: contact.Fields(3_000_000 + n)}
	}); err != nil {
		return nil, err
	}
	var given struct{ Data struct{ AccessToken string } }
	credentials := map[string]string{"email": endUser, "password": endUserPassword}
	if err := logIn(ctx, s.base+login, credentials, &given); err != nil {
		return nil, err
	}
	var field []contestant
	add := func(row string, l load, err error) error {
		field = append(field, contestant{name: plainName, start: g.start, workloads: []workload{{row, l}}})
		return err
	}
	if g.c.wants("login") {
		l, err := loginLoad(g.c, "gatehouse-login", login, credentials)
		if err := add(rowLogin, l, err); err != nil {
			return nil, err
		}
	}
	if !g.c.wants("jwt") {
		return field, nil
	}
	path := contacts + "?limit=50"
	if err := sameList(ctx, s, path, given.Data.AccessToken, key); err != nil {
		return nil, err
	}
	for _, by := range []struct{ row, token string }{{rowJWTList, given.Data.AccessToken}, {rowKeyList, key}} {
		l, err := prepareLoad(g.c, fileName("gatehouse "+by.row), by.token, gets(path))
		if err := add(by.row, l, err); err != nil {
			return nil, err
		}
	}
	return field, nil
}

// logIn logs in and decodes the answer.
func logIn(ctx context.Context, url string, credentials map[string]string, into any) error {
	status, raw, err := post(ctx, url, "", credentials)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("login: status %d: %s", status, raw)
	}
	return json.Unmarshal(raw, into)
}

func loginLoad(c *config, name, path string, credentials map[string]string) (load, error) {
	body, err := json.Marshal(credentials)
	if err != nil {
		return load{}, err
	}
	l, err := prepareLoad(c, name, "", []string{"POST\t" + path + "\t" + string(body)})
	l.clients = loginClients
	return l, err
}

// sameList checks that a list has 50 records and is the same for each user.
func sameList(ctx context.Context, s *server, path string, tokens ...string) error {
	var first []byte
	for _, token := range tokens {
		_, body, err := fetch(ctx, s.base, path, token)
		if err != nil {
			return err
		}
		var reply struct {
			Data []json.RawMessage
		}
		if err := json.Unmarshal(body, &reply); err != nil || len(reply.Data) != 50 {
			return fmt.Errorf("the list has %d records, not 50: %w", len(reply.Data), err)
		}
		records, err := json.Marshal(reply.Data)
		if err != nil {
			return err
		}
		if first == nil {
			first = records
		}
		if !bytes.Equal(records, first) {
			return fmt.Errorf("two credentials of one user have different lists:\n%s\n%s", first, records)
		}
	}
	return nil
}

const pocketLogin = "/api/collections/users/auth-with-password"

// login returns the load of PocketBase's logins, tried once.
func (p *pocketBase) login(ctx context.Context, s *server) (load, error) {
	credentials := map[string]string{"identity": p.Email, "password": p.Password}
	var given struct{ Token string }
	if err := logIn(ctx, s.base+pocketLogin, credentials, &given); err != nil {
		return load{}, err
	}
	if given.Token == "" {
		return load{}, fmt.Errorf("%s gave no token", pocketName)
	}
	return loginLoad(p.c, "pocketbase-login", pocketLogin, credentials)
}
