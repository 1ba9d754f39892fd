package child

import "encoding/json"

// Bound holds this process to the bounds of a request.
func Bound(argument string) {
	var q request
	if err := json.Unmarshal([]byte(argument), &q); err != nil {
		panic(err)
	}
	q.bound()
}
