package records

// EncodeCursor and DecodeCursor are the cursor's two halves, for its own tests.
func EncodeCursor(key []byte, scope string, before int64, id string, after, top int64) string {
	return cursor{before: before, beforeID: id, after: after, top: top}.encode(key, scope)
}

// DecodeCursor reads the cursor back.
func DecodeCursor(key []byte, scope, text string) (before int64, id string, after, top int64, err error) {
	c, err := decodeCursor(key, scope, text)
	return c.before, c.beforeID, c.after, c.top, err
}
