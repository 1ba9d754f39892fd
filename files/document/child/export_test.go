package child

import "encoding/json"

// Bound holds this process to the bounds of a request.
func Bound(argument string) {
	var q request
	if err := json.Unmarshal([]byte(argument), &q); err != nil {
		panic(err)
	}
	Limit(q.MemoryBytes, q.CPU)
}

// Confine confines this process as a request asks.
func Confine(argument string) error {
	var q request
	if err := json.Unmarshal([]byte(argument), &q); err != nil {
		return err
	}
	return q.confine()
}
