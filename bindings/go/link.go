//go:build !forebay_static

package forebay

// #cgo pkg-config: forebay
import "C"
