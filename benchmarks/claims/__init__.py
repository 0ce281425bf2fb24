"""What `truth.py` is made of: judges of claims, plain interpreters that are asked, and patches that are tried."""
