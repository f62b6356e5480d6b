package automation

import (
	"regexp"

	"gatehouse/internal/fault"
)

var failType = nodeType{"fail", []string{"message", "code", "status"}, false, func() declaration { return &failDecl{} }}

var codeRule = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

type failDecl struct {
	message, code string
	status        int
}

func (d *failDecl) decode(m members, n *node, _ int) {
	d.message, d.code = m.text("message", true), m.text("code", false)
	if d.code != "" && !codeRule.MatchString(d.code) {
		m.problems.add(member(n.path, "code"), "expected a code like OUT_OF_STOCK, found %s", show(d.code))
	}
	d.status = m.whole("status", 400, 599, 422)
}

func (d *failDecl) compile(c *compiler, n *node) executor {
	made := &failNode{message: c.template(d.message, member(n.path, "message")), code: fault.Code(d.code), status: d.status}
	if d.code == "" {
		made.code = fault.ExecutionError
	}
	return made
}

type failNode struct {
	message template
	code    fault.Code
	status  int
}

func (n *failNode) execute(r *run) (any, error) {
	v, err := n.message.value(r)
	if err != nil {
		return nil, err
	}
	message, err := appendText(nil, v, 4<<10)
	if err != nil {
		return nil, mistake("the message of fail is too long: expected at most 4 KiB")
	}
	return nil, &fault.Error{Code: n.code, Message: string(message), Status: n.status}
}
