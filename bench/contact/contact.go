// Package contact makes the records that every contestant is filled with: the same entity
// type, the same fields, and the same values for the same number.
package contact

import (
	"fmt"
	"math/rand/v2"
)

// Stages are the options of the select field. The last one is kept for the
// records that a sharing rule by field value picks out.
var Stages = []string{"new", "contacted", "qualified", "lost", "won"}

// Won is the stage no record has unless it is asked for.
const Won = "won"

var (
	firsts  = []string{"Ana", "Bela", "Chidi", "Dana", "Emre", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kaja", "Luis", "Mara", "Noor", "Olga", "Pere"}
	lasts   = []string{"Albrecht", "Bianchi", "Castillo", "Dvorak", "Eriksen", "Fontaine", "Grimaldi", "Horvat", "Ivanova", "Jansen", "Kowalski", "Lindqvist"}
	cities  = []string{"Antwerp", "Bologna", "Cork", "Dresden", "Eindhoven", "Freiburg", "Ghent", "Hamburg", "Innsbruck", "Jena"}
	phrases = []string{
		"met at the spring fair, asked for the price list",
		"prefers to be called in the morning",
		"wants the quarterly figures before deciding",
		"has a contract with a competitor until next year",
		"was referred by a colleague in the same street",
	}
)

// Fields returns the values of record n. It is a pure function of n.
func Fields(n int) map[string]any {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	first, last := pick(firsts), pick(lasts)
	return map[string]any{
		"first_name": first,
		"last_name":  last,
		"email":      fmt.Sprintf("%s.%s.%d@example.com", first, last, n),
		"phone":      fmt.Sprintf("+49 30 %07d", r.IntN(10_000_000)),
		"city":       pick(cities),
		"stage":      pick(Stages[:len(Stages)-1]),
		"score":      r.IntN(1000),
		"subscribed": r.IntN(2) == 1,
		"notes":      pick(phrases) + "; " + pick(phrases),
	}
}
