package identity

import (
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func TestMeIsTheProfile(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = noProof })
		w.do("register", `{"email":"Eva@customer.example","password":"correct horse","name":"Eva","locale":"de","score":7,"extra":[1, 2]}`).want(201, "")
		u := w.user(eva)
		me := func() answer { return w.call(w.config(), "GET", "me", "", w.viewer(eva)) }
		want := `{"userId":"` + string(u.ID) + `","email":"Eva@customer.example","name":"Eva","locale":"de","emailVerified":true,` +
			`"customFields":{"company":null,"extra":"[1,2]","score":"7"},"createdAt":"` + string(clock.AppendRFC3339Micro(nil, u.CreatedAt)) + `"}`
		if a := me().want(200, ""); a.raw != want {
			t.Errorf("%s\nwant %s", a.raw, want)
		}
		put := func(g access.EntityGrant) {
			w.must(tenant.Configure(w.ctx, w.d.For(acme), "test", w.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
				log.Record("permission_set", "portal", 1, 2)
				return access.PutPermissionSet(w.ctx, tx, &access.PermissionSet{Name: "portal", Entities: map[string]access.EntityGrant{"user": g}})
			}))
			w.dir.Forget()
		}
		put(access.EntityGrant{Read: true, Fields: map[string]access.FieldGrant{"score": {}, "extra": {Read: true}}})
		fields, _ := me().data["customFields"].(map[string]any)
		if _, shown := fields["score"]; shown || len(fields) != 2 {
			t.Errorf("a field that is withheld is shown: %v", fields)
		}
		w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error { return user.Delete(w.ctx, tx, u.ID) }))
		viewer, err := w.dir.Viewer(w.ctx, w.config(), u.ID, true)
		if err == nil {
			w.call(w.config(), "GET", "me", "", viewer).want(401, fault.Unauthorized)
		}
	})
}

func TestTheSurface(t *testing.T) {
	w := &world{t: t, id: &Service{}}
	for _, r := range w.id.Routes() {
		w.must(r.Check())
		if anonymous := r.Auth == httpapi.Anonymous; anonymous != (r.Limit == httpapi.PerRule) || r.Audit != httpapi.AuditIdentity {
			t.Errorf("%s", r.Policy())
		}
	}
	if n := len(w.id.Routes()); n != 12 {
		t.Errorf("%d routes", n)
	}
}
