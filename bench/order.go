package main

import (
	_ "embed" // for the sources
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// The JavaScript that books orders. The computation is the same text for every contestant;
// each has its own code around it that calls it and saves the record.
var (
	//go:embed javascript/reckon.js
	reckonText string
	//go:embed javascript/component.js
	componentText string
	//go:embed javascript/routes.pb.js
	routesText string
)

// componentSource returns Gatehouse's logic component.
func componentSource() string { return reckonText + componentText }

// routesSource returns PocketBase's hooks file: the route for orders, and the small one.
func routesSource() string { return strings.Replace(routesText, "/* reckon */", reckonText, 1) }

// purchase is an order as it is sent; in JSON it has about 1.5 KB.
type purchase struct {
	Customer string      `json:"customer"`
	Address  address     `json:"address"`
	Currency string      `json:"currency"`
	Note     string      `json:"note"`
	Lines    []orderLine `json:"lines"`
}

// address is where it goes.
type address struct {
	Street string `json:"street"`
	Zip    string `json:"zip"`
	City   string `json:"city"`
}

// orderLine is one article; Tax is its rate in percent.
type orderLine struct {
	SKU         string  `json:"sku"`
	Description string  `json:"description"`
	Quantity    int     `json:"quantity"`
	Price       float64 `json:"price"`
	Tax         int     `json:"tax"`
}

var (
	buyers   = []string{"Albrecht & Söhne GmbH", "Bianchi Forniture S.r.l.", "Castillo Hermanos", "Dvorak Trading", "Eriksen Skibsudstyr"}
	streets  = []string{"Hafenstraße", "Mill Lane", "Gartenweg", "Station Road", "Am Alten Markt"}
	towns    = []string{"Antwerp", "Bologna", "Dresden", "Freiburg", "Hamburg"}
	articles = []string{
		"Centrifugal pump 40/160, cast iron", "Filter cartridge 10 in, 5 micron", "Ball valve DN 25, brass, with lever",
		"Hose clamp 20-32 mm, stainless", "Pressure gauge 0-10 bar, glycerine", "Sealing ring set for pump 40/160",
	}
	rates = []int{0, 7, 19} // taxes in percent
)

// newPurchase returns order n of twelve lines. It is a pure function of n.
func newPurchase(n int) purchase {
	r := rand.New(rand.NewPCG(uint64(n), 11))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	o := purchase{
		Customer: pick(buyers),
		Address:  address{Street: fmt.Sprintf("%s %d", pick(streets), 1+r.IntN(200)), Zip: fmt.Sprintf("%05d", r.IntN(100_000)), City: pick(towns)},
		Currency: "EUR",
		Note:     "Please deliver before noon and ring at the gate; the invoice goes to the accounts department.",
	}
	for range 12 {
		o.Lines = append(o.Lines, orderLine{
			SKU:         fmt.Sprintf("%c%c-%05d", 'A'+r.IntN(26), 'A'+r.IntN(26), r.IntN(100_000)),
			Description: pick(articles),
			Quantity:    1 + r.IntN(24),
			Price:       float64(50+r.IntN(50_000)) / 100,
			Tax:         rates[r.IntN(len(rates))],
		})
	}
	return o
}

// gross returns the total of the order, which every contestant must answer.
func (o purchase) gross() float64 {
	net := make(map[int]float64) // by rate, in cents
	for _, line := range o.Lines {
		net[line.Tax] += float64(line.Quantity) * math.Round(line.Price*100)
	}
	sum := 0.0
	for rate, cents := range net {
		sum += cents + math.Round(cents*float64(rate)/100)
	}
	return sum / 100
}
