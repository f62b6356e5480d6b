//go:build !race

package prove

const racing = false
