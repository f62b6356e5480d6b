package automation

// sharing is what record.share and record.unshare have beside the record: whom
// it is shared with, and for what. It is empty in the other nodes.
type sharing struct{ user, role, access string }

func (d *sharing) decode(m members, withAccess bool) {
	const expected = "one of user and role"
	d.user, d.role = m.text("user", false), m.text("role", false)
	if (d.user == "") == (d.role == "") && m.o != nil {
		m.problems.add(m.path, "%s: expected %s", m.what, expected)
	}
	if !withAccess {
		return
	}
	d.access = m.text("access", true)
	if d.access != "" && d.access != "read" && d.access != "edit" {
		m.problems.add(member(m.path, "access"), "expected read or edit, found %s", show(d.access))
	}
}

func (d *sharing) compile(c *compiler, n *node) sharedWith {
	made := sharedWith{access: d.access}
	if d.user != "" {
		made.user = c.template(d.user, member(n.path, "user"))
	}
	if d.role != "" {
		made.role = c.template(d.role, member(n.path, "role"))
	}
	return made
}

// sharedWith is a sharing that was compiled.
type sharedWith struct {
	user, role template
	access     string
}

// evaluate sets the members of a call. It returns a mistake for a value that is
// no text.
func (w *sharedWith) evaluate(r *run, call *RecordCall) (err error) {
	call.Access = w.access
	if call.User, err = named(r, w.user, "the id or e-mail address of a user"); err != nil {
		return err
	}
	call.Role, err = named(r, w.role, "the name of a role")
	return err
}

func named(r *run, t template, expected string) (string, error) {
	if t == nil {
		return "", nil
	}
	v, err := t.value(r)
	if err != nil {
		return "", err
	}
	name, ok := v.(string)
	if !ok || name == "" {
		return "", mistakef("expected %s, found %s", expected, describe(v))
	}
	return name, nil
}
