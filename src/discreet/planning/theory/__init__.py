"""What the papers prove, in the form in which it is true."""
