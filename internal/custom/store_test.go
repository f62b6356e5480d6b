package custom_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
)

func TestDefinitionsComeBackAsTheyWere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		change := func(fn func(tx tenant.ConfigTx) error) {
			t.Helper()
			if err := tenanttest.Change(ctx, h, fn); err != nil {
				t.Fatal(err)
			}
		}
		c := &custom.Component{Name: "score", TimeoutMS: 100, Source: "export default 1 < 2", Context: custom.Context{Kind: custom.SpecificUser, UserID: "u"}}
		a := &custom.Automation{Name: "flow", Context: custom.Context{Kind: custom.System}, Flow: jsontext.Value(`{"name":"<flow>"}`)}
		e := &custom.Endpoint{Slug: "hook", Auth: custom.Token, Reply: custom.Result, Target: custom.Target{Kind: custom.ToAutomation, Name: "flow"}, SealedSecret: "s"}
		change(func(tx tenant.ConfigTx) error {
			return errors.Join(custom.PutComponent(ctx, tx, c), custom.PutAutomation(ctx, tx, a), custom.PutEndpoint(ctx, tx, e))
		})
		all, err := custom.Load(ctx, h)
		if err != nil || !reflect.DeepEqual(all.Components["score"], c) || !reflect.DeepEqual(all.Endpoints["hook"], e) || string(all.Automations["flow"].Flow) != string(a.Flow) {
			t.Errorf("%+v %+v %+v %v", all.Components["score"], all.Automations["flow"], all.Endpoints["hook"], err)
		}

		hash := func() string {
			is, err := custom.TokenHash(ctx, h, "hook")
			if err != nil {
				t.Fatal(err)
			}
			return string(is)
		}
		change(func(tx tenant.ConfigTx) error {
			known, err := custom.PutToken(ctx, tx, "hook", "hash", "svc_whk_abcd")
			other, errOther := custom.PutToken(ctx, tx, "nothing", "hash", "svc_whk_abcd")
			if !known || other {
				t.Errorf("PutToken: %v for the endpoint, %v for none", known, other)
			}
			return errors.Join(err, errOther)
		})
		change(func(tx tenant.ConfigTx) error { return custom.PutEndpoint(ctx, tx, e) })
		if hash() != "hash" {
			t.Errorf("an endpoint that is stored again lost its token")
		}
		e.Auth = custom.APIKey
		change(func(tx tenant.ConfigTx) error { return custom.PutEndpoint(ctx, tx, e) })
		if hash() != "" {
			t.Error("an endpoint that takes no token kept it")
		}
		change(func(tx tenant.ConfigTx) error {
			return errors.Join(custom.DeleteComponent(ctx, tx, "score"), custom.DeleteAutomation(ctx, tx, "flow"), custom.DeleteEndpoint(ctx, tx, "hook"))
		})
		if all, err := custom.Load(ctx, h); err != nil || len(all.Components)+len(all.Automations)+len(all.Endpoints) != 0 {
			t.Errorf("%+v %v", all, err)
		}
	})
}

// TestTheReplyOfSignedEndpoints is a receipt unless they say otherwise, also in rows of versions in which
// they could not: these have reply: result. allow_get stays what it is.
func TestTheReplyOfSignedEndpoints(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		put := []*custom.Endpoint{
			{Slug: "receipt", Auth: custom.Signed, Reply: custom.Receipt, AllowGet: true}, {Slug: "result", Auth: custom.Signed, Reply: custom.Result},
			{Slug: "token", Auth: custom.Token, Reply: custom.Result}, {Slug: "token-receipt", Auth: custom.Token, Reply: custom.Receipt},
		}
		err := tenanttest.Change(ctx, h, func(tx tenant.ConfigTx) error {
			for _, e := range put {
				if err := custom.PutEndpoint(ctx, tx, e); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO custom_endpoints (tenant_id, slug, definition, webhook_secret, previous_webhook_secret, token_hash, token_prefix)
				VALUES ($1, 'old', '{"auth":"signed","reply":"result"}', '', '', '', '')`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		all, err := custom.Load(ctx, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range put {
			if !reflect.DeepEqual(all.Endpoints[e.Slug], e) {
				t.Errorf("%+v came back as %+v", e, all.Endpoints[e.Slug])
			}
		}
		if e := all.Endpoints["old"]; e.Reply != custom.Receipt || e.AllowGet {
			t.Errorf("an endpoint of an older version: %+v", e)
		}
	})
}

func TestNamesAndSlugs(t *testing.T) {
	for s, want := range map[string][2]bool{ // slug, name
		"a": {true, true}, "a_b": {true, true}, "a-b": {true, false}, "1a": {true, false}, "A": {}, "": {}, "-a": {}, "_a": {}, "a/b": {}, "a\n": {}, "ä": {},
	} {
		if got := [2]bool{custom.ValidSlug(s), custom.ValidName(s)}; got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// TestSecretsOfAnotherMasterKeyAreFound, of whichever of an endpoint's two secrets.
func TestSecretsOfAnotherMasterKeyAreFound(t *testing.T) {
	ring, err := secret.NewKeyring(bytes.Repeat([]byte{1}, 32))
	other, errOther := secret.NewKeyring(bytes.Repeat([]byte{2}, 32))
	if err := errors.Join(err, errOther); err != nil {
		t.Fatal(err)
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		for i, e := range []*custom.Endpoint{
			{SealedSecret: other.Seal(custom.SecretPurpose, []byte("a"))},
			{SealedSecret: ring.Seal(custom.SecretPurpose, []byte("a")), SealedPrevious: other.Seal(custom.SecretPurpose, []byte("b"))},
			{SealedSecret: ring.Seal(custom.SecretPurpose, []byte("a"))}, {},
		} {
			e.Slug, e.Auth = "hook", custom.Signed
			h := d.For(tenant.ID(fmt.Sprintf("t%d", i)))
			if err := tenanttest.Change(ctx, h, func(tx tenant.ConfigTx) error { return custom.PutEndpoint(ctx, tx, e) }); err != nil {
				t.Fatal(err)
			}
			if err := custom.CheckSecrets(ctx, h, ring); errors.Is(err, secret.ErrOpen) != (i < 2) {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}
