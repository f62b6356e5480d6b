package endpoint

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// whereOf reads where: for each field a value that it equals, or an object of
// operators and operands, in the form {field: {gte: 1, lt: 10}}. A list as or has
// groups of such members. Anything else is VALIDATION.
func whereOf(members []records.Member) (all []records.Filter, or [][]records.Filter, err error) {
	for _, m := range members {
		if m.Name == "or" && m.Value.Kind() == '[' {
			if or, err = groups(m.Value); err != nil {
				return nil, nil, err
			}
			continue
		}
		if all, err = appendConditions(all, m.Name, m.Value); err != nil {
			return nil, nil, err
		}
	}
	return all, or, nil
}

// groups reads the list of or.
func groups(v jsontext.Value) (or [][]records.Filter, err error) {
	const expected = "where: or: expected a list of objects, each with conditions"
	list, err := elementsOf(v)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 { // no condition would select everything
		return nil, fault.New(fault.Validation, expected)
	}
	for _, e := range list {
		if e.Kind() != '{' {
			return nil, fault.New(fault.Validation, expected)
		}
		o, err := httpapi.ParseObject(e)
		if err != nil {
			return nil, err
		}
		var group []records.Filter
		for _, m := range o.Members {
			if group, err = appendConditions(group, m.Name, m.Value); err != nil {
				return nil, err
			}
		}
		or = append(or, group)
	}
	return or, nil
}

// appendConditions appends the conditions on a field.
func appendConditions(list []records.Filter, field string, v jsontext.Value) ([]records.Filter, error) {
	const expected = "where: %s: expected a text, number or boolean, or an object of operators like {gte: 1, lt: 10}"
	if v.Kind() != '{' {
		text, ok := operand(v)
		if !ok {
			return nil, fault.New(fault.Validation, expected, field)
		}
		return append(list, records.Filter{Field: field, Value: text}), nil
	}
	o, err := httpapi.ParseObject(v)
	if err != nil {
		return nil, err
	}
	if len(o.Members) == 0 { // no condition would select everything
		return nil, fault.New(fault.Validation, expected, field)
	}
	for _, m := range o.Members {
		f := records.Filter{Field: field, Op: schema.Operator(m.Name)}
		var elements []jsontext.Value
		if f.Op.TakesList() {
			if m.Value.Kind() != '[' {
				return nil, fault.New(fault.Validation, "where: %s: %s: expected a list of values", field, m.Name)
			}
			if elements, err = elementsOf(m.Value); err != nil {
				return nil, err
			}
		} else {
			elements = []jsontext.Value{m.Value}
		}
		for _, e := range elements {
			text, ok := operand(e)
			if !ok {
				return nil, fault.New(fault.Validation, "where: %s: %s: expected a text, number or boolean", field, m.Name)
			}
			f.List = append(f.List, text)
		}
		if !f.Op.TakesList() {
			f.Value, f.List = f.List[0], nil
		}
		list = append(list, f)
	}
	return list, nil
}

// operand returns the text form of a text, number or boolean.
func operand(v jsontext.Value) (text string, ok bool) {
	switch v.Kind() {
	case '"':
		s, err := jsontext.AppendUnquote(nil, v)
		return string(s), err == nil
	case '0', 't', 'f':
		return string(v), true
	}
	return "", false
}

// elementsOf returns the elements of a list that was read within an object.
func elementsOf(v jsontext.Value) (list []jsontext.Value, err error) {
	err = json.Unmarshal(v, &list)
	return list, err
}
