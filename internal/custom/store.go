package custom

import (
	"cmp"
	"context"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// Load reads all of a tenant's definitions. Outside a transaction they may be
// of different versions of the configuration.
func Load(ctx context.Context, q db.Querier) (*Definitions, error) {
	d := &Definitions{Modules: map[string]*Module{}, Components: map[string]*Component{}, Automations: map[string]*Automation{}, Endpoints: map[string]*Endpoint{}}
	err := q.Query(ctx, `SELECT name, definition, source FROM component_modules WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		m := &Module{Name: r.Text(0), Source: r.Text(2)}
		d.Modules[m.Name] = m
		return json.Unmarshal(r.Bytes(1), m)
	})
	if err != nil {
		return nil, err
	}
	err = q.Query(ctx, `SELECT name, definition, source, secrets FROM logic_components WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		c := &Component{Name: r.Text(0), Source: r.Text(2)}
		d.Components[c.Name] = c
		if sealed := r.Bytes(3); string(sealed) != "{}" {
			if err := json.Unmarshal(sealed, &c.Secrets); err != nil {
				return err
			}
		}
		return json.Unmarshal(r.Bytes(1), c)
	})
	if err != nil {
		return nil, err
	}
	err = q.Query(ctx, `SELECT name, definition FROM automations WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		a := &Automation{Name: r.Text(0)}
		d.Automations[a.Name] = a
		return jsonv2.Unmarshal(r.Bytes(1), a)
	})
	if err != nil {
		return nil, err
	}
	err = q.Query(ctx, `SELECT slug, definition, webhook_secret, previous_webhook_secret, token_prefix
		FROM custom_endpoints WHERE tenant_id = $1 ORDER BY slug`, func(r db.Row) error {
		e := &Endpoint{Slug: r.Text(0), SealedSecret: r.Text(2), SealedPrevious: r.Text(3), TokenPrefix: r.Text(4)}
		d.Endpoints[e.Slug] = e
		stored := storedEndpoint{Endpoint: e}
		if err := json.Unmarshal(r.Bytes(1), &stored); err != nil {
			return err
		}
		if e.Auth == Signed {
			e.Reply = cmp.Or(stored.SignedReply, Receipt)
		}
		return nil
	})
	return d, err
}

// storedEndpoint is an endpoint's definition as it is stored. In signed mode Reply means
// nothing there: it is result in rows of before there was a choice, and in those that an
// older version beside this one writes. SignedReply has it, where it is not Receipt.
type storedEndpoint struct {
	*Endpoint
	SignedReply Reply `json:"signed_reply,omitempty"`
}

// CheckSecrets fails with secret.ErrOpen when a secret of a webhook or component of
// the tenant that q is bound to was sealed under another master key.
func CheckSecrets(ctx context.Context, q db.Querier, keyring *secret.Keyring) error {
	d, err := Load(ctx, q)
	if err != nil {
		return err
	}
	open := func(purpose, sealed string) {
		if err == nil && sealed != "" {
			_, err = keyring.Open(purpose, sealed)
		}
	}
	for _, e := range d.Endpoints {
		open(SecretPurpose, e.SealedSecret)
		open(SecretPurpose, e.SealedPrevious)
	}
	for _, c := range d.Components {
		for _, sealed := range c.Secrets {
			open(ComponentSecretPurpose, sealed)
		}
	}
	return err
}

// PutModule makes a module equal to m.
func PutModule(ctx context.Context, tx tenant.ConfigTx, m *Module) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO component_modules (tenant_id, name, definition, source) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, name) DO UPDATE SET definition = excluded.definition, source = excluded.source`, m.Name, string(b), m.Source)
	return err
}

// DeleteModule removes a module.
func DeleteModule(ctx context.Context, tx tenant.ConfigTx, name string) error {
	_, err := tx.Exec(ctx, `DELETE FROM component_modules WHERE tenant_id = $1 AND name = $2`, name)
	return err
}

// PutComponent makes a logic component equal to c.
func PutComponent(ctx context.Context, tx tenant.ConfigTx, c *Component) error {
	b, err := jsonv2.Marshal(c, jsonv2.FormatNilSliceAsNull(true)) // which keeps the config's text as it is
	if err != nil {
		return err
	}
	secrets, err := jsonv2.Marshal(c.Secrets, jsonv2.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO logic_components (tenant_id, name, definition, source, secrets) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, name) DO UPDATE SET definition = excluded.definition, source = excluded.source, secrets = excluded.secrets`,
		c.Name, string(b), c.Source, string(secrets))
	return err
}

// DeleteComponent removes a logic component.
func DeleteComponent(ctx context.Context, tx tenant.ConfigTx, name string) error {
	_, err := tx.Exec(ctx, `DELETE FROM logic_components WHERE tenant_id = $1 AND name = $2`, name)
	return err
}

// PutAutomation makes an automation equal to a.
func PutAutomation(ctx context.Context, tx tenant.ConfigTx, a *Automation) error {
	b, err := jsonv2.Marshal(a) // which keeps the flow's text as it is
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO automations (tenant_id, name, definition) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, name) DO UPDATE SET definition = excluded.definition`, a.Name, string(b))
	return err
}

// DeleteAutomation removes an automation.
func DeleteAutomation(ctx context.Context, tx tenant.ConfigTx, name string) error {
	_, err := tx.Exec(ctx, `DELETE FROM automations WHERE tenant_id = $1 AND name = $2`, name)
	return err
}

// PutEndpoint makes an endpoint equal to e. Its webhook token stays what it is,
// and is forgotten where the endpoint takes none.
func PutEndpoint(ctx context.Context, tx tenant.ConfigTx, e *Endpoint) error {
	stored := storedEndpoint{Endpoint: e}
	if e.Auth == Signed && e.Reply != Receipt {
		stored.SignedReply = e.Reply
	}
	b, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO custom_endpoints (tenant_id, slug, definition, webhook_secret, previous_webhook_secret, token_hash, token_prefix)
		VALUES ($1, $2, $3, $4, $5, '', '')
		ON CONFLICT (tenant_id, slug) DO UPDATE SET definition = excluded.definition, webhook_secret = excluded.webhook_secret,
		previous_webhook_secret = excluded.previous_webhook_secret`, e.Slug, string(b), e.SealedSecret, e.SealedPrevious)
	if err == nil && e.Auth != Token {
		_, err = PutToken(ctx, tx, e.Slug, "", "")
	}
	return err
}

// DeleteEndpoint removes an endpoint and its webhook token. What its
// deliveries were recognized by stays: an endpoint that comes back under its
// slug does not process them again.
func DeleteEndpoint(ctx context.Context, tx tenant.ConfigTx, slug string) error {
	_, err := tx.Exec(ctx, `DELETE FROM custom_endpoints WHERE tenant_id = $1 AND slug = $2`, slug)
	return err
}

// PutToken replaces the webhook token of an endpoint; it reports whether there
// is such an endpoint.
func PutToken(ctx context.Context, tx tenant.ConfigTx, slug string, hash secret.TokenHash, prefix string) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE custom_endpoints SET token_hash = $3, token_prefix = $4 WHERE tenant_id = $1 AND slug = $2`, slug, hash, prefix)
	return n > 0, err
}

// TokenHash is the hash of an endpoint's webhook token; "" when it has none.
func TokenHash(ctx context.Context, q db.Querier, slug string) (hash secret.TokenHash, err error) {
	err = q.Query(ctx, `SELECT token_hash FROM custom_endpoints WHERE tenant_id = $1 AND slug = $2`, func(r db.Row) error {
		hash = secret.TokenHash(r.Text(0))
		return nil
	}, slug)
	return hash, err
}

// OpenSecrets returns a component's secrets by name. It returns secret.ErrOpen for those
// that were sealed under another master key.
func OpenSecrets(keyring *secret.Keyring, c *Component) (map[string]string, error) {
	if len(c.Secrets) == 0 {
		return nil, nil
	}
	plain := make(map[string]string, len(c.Secrets))
	for name, sealed := range c.Secrets {
		text, err := keyring.Open(ComponentSecretPurpose, sealed)
		if err != nil {
			return nil, err
		}
		plain[name] = string(text)
	}
	return plain, nil
}
