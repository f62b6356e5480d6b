package schema

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// field returns a field of a type with what its declaration must have.
func field(t Type) *Field {
	f := &Field{Name: "f", Type: t}
	if f.kind().options {
		f.Options = []string{"new", "won"}
	}
	if f.kind().target {
		f.Target = "contact"
	}
	return f
}

// examples are values of each type: as sent and as stored, and what is refused.
var examples = map[Type]struct {
	taken   [][2]string
	refused []string
	text    [2]string // a text form and its value
	equal   [2]string // two values with one key
}{
	Text:           {[][2]string{{`"a\u00e9"`, `"aé"`}, {`""`, `""`}}, []string{`1`, `"\u0000"`, `"\ud800"`, `[]`}, [2]string{`1`, `"1"`}, [2]string{`"é"`, `"\u00e9"`}},
	Number:         {[][2]string{{`1e5`, `100000`}, {`1.50`, `1.5`}, {`-0`, `0`}}, []string{`"1"`, `1e400`, `1e-400`, `9007199254740993`, `1e17`}, [2]string{`1.0`, `1`}, [2]string{`1`, `1.0`}},
	Boolean:        {[][2]string{{`true`, `true`}}, []string{`"true"`, `0`}, [2]string{`true`, `true`}, [2]string{`false`, `false`}},
	Date:           {[][2]string{{`"2024-02-29"`, `"2024-02-29"`}}, []string{`"2025-02-29"`, `"2025-1-1"`, `20250101`}, [2]string{`2026-01-31`, `"2026-01-31"`}, [2]string{`"2026-01-31"`, `"2026-01-31"`}},
	Datetime:       {[][2]string{{`"2026-01-31T12:00:00+02:00"`, `"2026-01-31T12:00:00+02:00"`}, {`"9999-12-31T23:59:59-00:00"`, `"9999-12-31T23:59:59-00:00"`}, {`"0000-01-01T01:00:00+01:00"`, `"0000-01-01T01:00:00+01:00"`}}, []string{`"2026-01-31"`, `"2026-01-31T12:00:00"`, `"2026-01-31T12:00:00+24:00"`, `"9999-12-31T23:59:59-01:00"`, `"0000-01-01T00:59:59+01:00"`}, [2]string{`2026-01-31T12:00:00Z`, `"2026-01-31T12:00:00Z"`}, [2]string{`"2026-01-31T12:00:00Z"`, `"2026-01-31T14:00:00.000+02:00"`}},
	Select:         {[][2]string{{`"new"`, `"new"`}}, []string{`"New"`, `"other"`, `["new"]`}, [2]string{`won`, `"won"`}, [2]string{`"won"`, `"won"`}},
	Multiselect:    {[][2]string{{`[ "won", "new" ]`, `["won","new"]`}, {`[]`, `[]`}}, []string{`"new"`, `["new","new"]`, `["other"]`, `[1]`}, [2]string{}, [2]string{}},
	Reference:      {[][2]string{{`"x"`, `"x"`}}, []string{`""`, `1`}, [2]string{`x`, `"x"`}, [2]string{`"x"`, `"x"`}},
	Multireference: {[][2]string{{`[ "x", "\u0079" ]`, `["x","y"]`}, {`[]`, `[]`}}, []string{`"x"`, `["x","x"]`, `[""]`, `[1]`, `{}`, "[" + strings.Repeat(`"x",`, 100) + `"y"]`}, [2]string{}, [2]string{}},
	JSON:           {[][2]string{{`{"bb": 1.0, "a": [ "\u00e9" ]}`, `{"a":["é"],"bb":1}`}, {`[]`, `[]`}}, []string{`"text"`, `1`, `[1e400]`, `{"a":"\u0000"}`, strings.Repeat("[", 64) + strings.Repeat("]", 64)}, [2]string{}, [2]string{}},
}

// The contract lists every field type (contract V1).
func TestTheContractListsEveryFieldType(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range Types {
		if !strings.Contains(string(contract), "\n| `"+string(kind)+"` | ") {
			t.Errorf("V1 does not list %s", kind)
		}
	}
}

func TestEveryFieldTypeTakesAndRefusesWhatItMust(t *testing.T) {
	for _, kind := range Types {
		x, ok := examples[kind]
		if !ok {
			t.Errorf("%s has no examples here", kind)
		}
		f := field(kind)
		for _, v := range x.taken {
			got, reason := f.Canonical(jsontext.Value(v[0]))
			if string(got) != v[1] || reason != "" {
				t.Errorf("%s: %s is stored as %s (%s), want %s", kind, v[0], got, reason, v[1])
			}
			if again, reason := f.Canonical(got); string(again) != string(got) {
				t.Errorf("%s: what is stored, %s, is stored as %s (%s)", kind, got, again, reason)
			}
		}
		for _, v := range x.refused {
			if got, reason := f.Canonical(jsontext.Value(v)); got != nil || reason == "" {
				t.Errorf("%s: %.40s is stored as %s", kind, v, got)
			}
		}
		if got, reason := f.Canonical(jsontext.Value("null")); string(got) != "null" || reason != "" {
			t.Errorf("%s: null is stored as %s (%s)", kind, got, reason)
		}
		if x.text != [2]string{} {
			if got, reason := f.ParseText(x.text[0]); string(got) != x.text[1] {
				t.Errorf("%s: the text %s is %s (%s), want %s", kind, x.text[0], got, reason, x.text[1])
			}
		}
	}
	if got, reason := (&Field{Name: "f", Type: "money"}).Canonical(jsontext.Value("1")); got != nil || reason != "has an unknown type" {
		t.Errorf("a field of an unknown type takes %s (%s)", got, reason)
	}
}

func TestEqualValuesHaveOneKey(t *testing.T) {
	for _, kind := range Types {
		f, x := field(kind), examples[kind]
		if !f.Scalar() {
			if key, ok := f.Key(jsontext.Value(x.taken[0][1])); ok {
				t.Errorf("%s has the key %s", kind, key)
			}
			continue
		}
		var keys [2]string
		for i, v := range x.equal {
			stored, _ := f.Canonical(jsontext.Value(v))
			keys[i], _ = f.Key(stored)
		}
		if keys[0] != keys[1] || keys[0] == "" {
			t.Errorf("%s: %v have the keys %v", kind, x.equal, keys)
		}
		if key, ok := f.Key(Null); ok {
			t.Errorf("%s: null has the key %s", kind, key)
		}
	}
}

func TestNumbersAndBooleansAreReadFromTextStrictly(t *testing.T) {
	for _, kind := range []Type{Number, Boolean} {
		for _, text := range []string{"", " 1", "true ", "null", `"1"`, "1 2", "x", "[]"} {
			if v, reason := field(kind).ParseText(text); v != nil || reason != "expected a "+string(kind) && reason != "expected true or false" {
				t.Errorf("%s: %q is read as %s (%s)", kind, text, v, reason)
			}
		}
	}
	if _, reason := field(Text).ParseText("\xff"); reason != "expected valid UTF-8" {
		t.Errorf("a text that is not UTF-8: %s", reason)
	}
}

// A declaration has what its type needs and nothing that belongs to another.
func TestDeclarationsOfFields(t *testing.T) {
	for _, kind := range Types {
		f := field(kind)
		if err := f.check(false); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		other := *f
		other.Options = []string{"x"}
		if f.Options != nil {
			other.Options = nil
		}
		if err := other.check(false); err == nil {
			t.Errorf("%s with options %v is taken", kind, other.Options)
		}
		other = *f
		other.Target = "x"
		if f.Target != "" {
			other.Target = ""
		}
		if err := other.check(false); err == nil {
			t.Errorf("%s with target %q is taken", kind, other.Target)
		}
		other = *f
		other.Indexed = true
		if err := other.check(false); (err == nil) != f.Scalar() {
			t.Errorf("%s, indexed: %v", kind, err)
		}
	}
	for want, f := range map[string]*Field{
		"expected a snake_case name":                                  {Name: "Not", Type: Text},
		`type "money": expected one of text, number`:                  {Name: "f", Type: "money"},
		"a select needs options":                                      {Name: "f", Type: Select},
		"options belong to select and multiselect, not to text":       {Name: "f", Type: Text, Options: []string{"a"}},
		"a reference needs the entity it points at":                   {Name: "f", Type: Reference},
		"entity belongs to reference and multireference, not to json": {Name: "f", Type: JSON, Target: "x"},
		"only a text is searchable, not a select":                     {Name: "f", Type: Select, Options: []string{"a"}, Searchable: true},
		"a multiselect cannot be unique or indexed":                   {Name: "f", Type: Multiselect, Options: []string{"a"}, Unique: true},
		"options must be distinct and not empty":                      {Name: "f", Type: Select, Options: []string{"a", "a"}},
		"the name is reserved":                                        {Name: "owner_id", Type: Text},
	} {
		err := (&Entity{Name: "deal", Sharing: Private, Fields: []*Field{f}}).Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
}

func TestDeclarationsOfEntityTypes(t *testing.T) {
	twice := []*Field{{Name: "a", Type: Text}, {Name: "a", Type: Number}}
	for want, e := range map[string]*Entity{
		"expected a singular snake_case name": {Name: "Deal", Sharing: Private},
		"is built in":                         {Name: UserEntity, Sharing: Private},
		"expected private, public_read":       {Name: "deal"},
		"field a is declared twice":           {Name: "deal", Sharing: Private, Fields: twice},
	} {
		if err := e.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", e.Name, err, want)
		}
	}
	for _, f := range []*Field{{Name: "a", Type: Text, Unique: true}, {Name: "a", Type: Reference}, {Name: "a", Type: Reference, Target: "x", Indexed: true}, {Name: "email", Type: Text}} {
		if CheckUserFields([]*Field{f}) == nil {
			t.Errorf("users take the field %+v", f)
		}
	}
	s := New([]*Entity{{Name: "deal", Fields: []*Field{{Name: "firm", Type: Reference, Target: "firm"}}}}, nil)
	if err := s.CheckTargets(); err == nil || err.Error() != `entity deal: field firm: there is no entity "firm"` {
		t.Errorf("a reference to nothing: %v", err)
	}
}

// What was renamed is found by the name that it is stored under (contract D7).
func TestNamesInUseAndNamesInStorage(t *testing.T) {
	s := New([]*Entity{
		{Name: "person", Stored: "contact", Fields: []*Field{{Name: "mail", Type: Text, Member: "email", IndexName: "email#1"}, {Name: "age", Type: Number}}},
		{Name: "deal", Fields: []*Field{{Name: "who", Type: Reference, Target: "person"}}},
	}, []*Field{{Name: "company", Type: Text}})
	person := s.Entity("person")
	if s.Entities[0].Name != "deal" || person == nil || s.StoredAs("contact") != person || s.StoredAs("person") != nil || s.Entity(UserEntity) != nil {
		t.Error("entity types are not found by their names")
	}
	mail, age := person.Field("mail"), person.Field("age")
	if person.OfMember("email") != mail || person.OfMember("mail") != nil || person.OfMemberBytes([]byte("age")) != age || mail.Index != 0 || age.Index != 1 {
		t.Error("fields are not found by their names")
	}
	got := fmt.Sprint(mail.MemberName(), mail.StoredAs(), mail.Label, string(mail.StoredLabel), age.StoredAs(), person.OfIndex("email#1"), person.OfIndex("gone"))
	if want := fmt.Sprint("email", "email#1", `"mail":`, `"email":`, "age", "mail", "gone"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if who := s.Entity("deal").Fields[0]; who.TargetAs() != "contact" || !who.Keyed() || who.Filterable() || age.Keyed() || who.Describe() != "reference to person" {
		t.Errorf("the reference is %+v", who)
	}
	if got := field(Select).Describe(); got != "select of [new won]" || age.Describe() != "number" {
		t.Errorf("a select is described as %s", got)
	}
}
