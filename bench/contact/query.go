package contact

import "fmt"

// The values by which the lists of the queries are filtered and searched. Every record has
// Region, a code that begins with Code, and Word in its notes; one in ten has City, one in
// ten a score of High or more, one in ten a code that begins with TenthCode; about one in three
// has Phrase in its notes.
const (
	Region    = "north"
	Code      = "c"
	Word      = "register"
	City      = "Jena"
	High      = 900
	TenthCode = "c7"
	Phrase    = "quarterly"
)

// Queried returns the values of record n of the queries: those of Fields, with what the
// lists are asked for.
func Queried(n int) map[string]any {
	fields := Fields(n)
	fields["region"] = Region
	fields["code"] = fmt.Sprintf("%s%d-%d", Code, n%10, n)
	fields["notes"] = fields["notes"].(string) + "; in the " + Word
	return fields
}
