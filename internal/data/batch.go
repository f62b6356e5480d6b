package data

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/wtf8"
)

// batch makes several changes of records of one type (contract R17).
func (s *Service) batch(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	entity := c.Params.Get("entity")
	if err := s.records.As(c.Viewer).MayWrite(entity); err != nil {
		return httpapi.Reply{}, err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return httpapi.Reply{}, err
	}
	body, err := c.JSON()
	if err != nil {
		return httpapi.Reply{}, err
	}
	var b records.Batch
	err = c.Compute(func() error {
		b, err = parseBatch(body)
		return err
	})
	if err != nil {
		return httpapi.Reply{}, err
	}
	b.Entity = entity
	done, again, err := s.write(ctx, c, b)
	if err != nil {
		return httpapi.Reply{}, ofItems(err)
	}
	reply := batchReply(b.Items, done)
	if again {
		reply = replayed(reply)
	}
	return reply, nil
}

// createOnce creates a record, once for each Idempotency-Key. again reports that it was
// created before.
func (s *Service) createOnce(ctx context.Context, c *httpapi.Authed, entity string, members []records.Member) (rec records.Record, again bool, err error) {
	b := records.Batch{Entity: entity, Atomic: true, Items: []records.Item{{Op: records.OpCreate, Fields: members}}}
	done, again, err := s.write(ctx, c, b)
	var failed *records.BatchError
	if errors.As(err, &failed) {
		err = failed.Done[0].Err
	}
	if err != nil {
		return nil, false, err
	}
	return done[0].Record, again, nil
}

// replayed marks the answer to a request that was done before.
func replayed(reply httpapi.Reply) httpapi.Reply {
	if reply.Header == nil {
		reply.Header = http.Header{}
	}
	reply.Header["Idempotent-Replay"] = []string{"true"}
	return reply
}

// weight returns how many requests a batch counts as (contract L2): one for each ten
// items, since an item costs about a tenth of a request.
func weight(items int) int { return (items + 9) / 10 }

// parseBatch reads the body {"items": […], "atomic": …}. An item that cannot be read
// fails by itself. It returns VALIDATION for anything else that is wrong.
func parseBatch(body *httpapi.Object) (records.Batch, error) {
	b, wrong := records.Batch{Atomic: true}, map[string]string{}
	for _, m := range body.Members {
		switch m.Name {
		case "items", "atomic":
		default:
			wrong[m.Name] = "unknown member"
		}
	}
	if v, ok := body.Get("atomic"); ok {
		if b.Atomic = v.Kind() == 't'; !b.Atomic && v.Kind() != 'f' {
			wrong["atomic"] = "expected true or false"
		}
	}
	var list []jsontext.Value
	if v, _ := body.Get("items"); v.Kind() == '[' {
		list = httpapi.Elements(v)
	}
	if len(list) == 0 || len(list) > records.MaxBatch {
		wrong["items"] = "expected a list of 1 to " + strconv.Itoa(records.MaxBatch) + " items"
	}
	if len(wrong) > 0 {
		return b, fault.Fields("the body of a batch is not valid", wrong)
	}
	b.Items = make([]records.Item, len(list))
	for i, v := range list {
		b.Items[i] = parseItem(v)
	}
	return b, nil
}

// takes lists the members that an operation's items have beside op; all are required.
var takes = map[records.Op][]string{
	records.OpCreate: {"fields"}, records.OpUpdate: {"id", "fields"}, records.OpDelete: {"id"}, records.OpUpsert: {"by", "fields"},
}

// parseItem reads one item. What is wrong with it is in its Err.
func parseItem(v jsontext.Value) (item records.Item) {
	if v.Kind() != '{' {
		item.Err = fault.New(fault.Validation, "expected an object with op")
		return item
	}
	o, err := httpapi.ParseObject(v)
	if err != nil {
		item.Err = httpapi.Public(err)
		return item
	}
	wrong := map[string]string{}
	op, _ := o.Get("op")
	item.Op = records.Op(textOf(op))
	expected, known := takes[item.Op]
	if !known {
		item.Op = ""
		item.Err = fault.Fields("the item is not valid", map[string]string{"op": "expected create, update, delete or upsert"})
		return item
	}
	missing := map[string]bool{}
	for _, name := range expected {
		missing[name] = true
	}
	for _, m := range o.Members {
		ok := missing[m.Name]
		delete(missing, m.Name)
		switch {
		case m.Name == "op":
		case !ok:
			wrong[m.Name] = "is not a member of " + string(item.Op)
		case m.Name == "fields":
			if m.Value.Kind() != '{' {
				wrong["fields"] = "expected an object"
				continue
			}
			fields, err := httpapi.ParseObject(m.Value)
			if err != nil {
				item.Err = httpapi.Public(err)
				return item
			}
			item.Fields = membersOf(fields)
		case textOf(m.Value) == "":
			wrong[m.Name] = "expected a text that is not empty"
		case m.Name == "id":
			item.ID = textOf(m.Value)
		default:
			item.By = textOf(m.Value)
		}
	}
	for name := range missing {
		wrong[name] = "required"
	}
	if len(wrong) > 0 {
		item.Err = fault.Fields("the item is not valid", wrong)
	}
	return item
}

// textOf returns a JSON text, "" for any other value.
func textOf(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(text)
}

// ofItems returns the error of an atomic batch with failing items as the caller sees it,
// and other errors unchanged.
func ofItems(err error) error {
	var failed *records.BatchError
	if errors.As(err, &failed) {
		return failed.Fault()
	}
	return err
}

// appendError appends the object of the error envelope.
func appendError(dst []byte, e *fault.Error) []byte {
	const before, after = `{"error":`, `}`
	enveloped := httpapi.AppendError(nil, e)
	return append(dst, enveloped[len(before):len(enveloped)-len(after)]...)
}

// batchReply returns the answer of a batch: each item has the status, and the data or
// the error, that the single call would have.
func batchReply(items []records.Item, done []records.Done) httpapi.Reply {
	size := 64 * len(done)
	for _, d := range done {
		size += len(d.Record)
	}
	data, failed := append(make([]byte, 0, size), '['), 0
	for i, d := range done {
		if i > 0 {
			data = append(data, ',')
		}
		data = strconv.AppendInt(append(data, `{"index":`...), int64(i), 10)
		if data = append(data, `,"op":`...); items[i].Op == "" {
			data = append(data, "null"...)
		} else {
			data = wtf8.AppendUTF8(data, string(items[i].Op))
		}
		data = strconv.AppendInt(append(data, `,"status":`...), int64(statusOf(d)), 10)
		switch {
		case d.Err != nil:
			failed++
			data = appendError(append(data, `,"error":`...), d.Err)
		case d.Record != nil:
			data = append(append(data, `,"data":`...), d.Record...)
		default:
			data = append(wtf8.AppendUTF8(append(data, `,"data":{"id":`...), d.ID), `,"deleted":true}`...)
		}
		data = append(data, '}')
	}
	meta := strconv.AppendInt([]byte(`{"succeeded":`), int64(len(done)-failed), 10)
	meta = strconv.AppendInt(append(meta, `,"failed":`...), int64(failed), 10)
	return httpapi.Reply{Data: append(data, ']'), Meta: append(meta, '}')}
}

// statusOf returns the status that the single call would have.
func statusOf(d records.Done) int {
	switch {
	case d.Err != nil:
		return d.Err.HTTPStatus()
	case d.Created:
		return http.StatusCreated
	}
	return http.StatusOK
}
